// A warp's 16 rows and TN columns of sums on plain cores: a lane has every 32nd column, and takes 4 of k at a time; so
// neighbours store neighbours, and nothing is staged.

#define COLUMNS (TN / 32)
#define STAGED 0

struct __align__(16) Four { Element of[4]; };

struct Sums {
    Element of[ROWS][COLUMNS];

    __device__ __forceinline__ void take(const Element* rows, const Element* columns, int pitch, int steps) {
        #pragma unroll
        for (int i = 0; i < ROWS * COLUMNS; ++i) of[i / COLUMNS][i % COLUMNS] = 0;
        columns += threadIdx.x % 32 * pitch;
        for (int k = 0; k < steps * STEP; k += 4) {
            Four of_n[COLUMNS];
            #pragma unroll
            for (int j = 0; j < COLUMNS; ++j) of_n[j] = *reinterpret_cast<const Four*>(columns + j * 32 * pitch + k);
            #pragma unroll
            for (int i = 0; i < ROWS; ++i) {
                Four of_m = *reinterpret_cast<const Four*>(rows + i * pitch + k);
                #pragma unroll
                for (int j = 0; j < COLUMNS; ++j)
                    #pragma unroll
                    for (int e = 0; e < 4; ++e) of[i][j] += of_m.of[e] * of_n[j].of[e];
            }
        }
    }

    // To P, which points at the warp's first row and column.
    __device__ __forceinline__ void store(Element* P, long long lead, int height, int width, Element*) const {
        P += threadIdx.x % 32;
        width -= threadIdx.x % 32;
        if (height == ROWS && width > TN - 32) {
            #pragma unroll
            for (int i = 0; i < ROWS; ++i, P += lead)
                #pragma unroll
                for (int j = 0; j < COLUMNS; ++j) P[32 * j] = of[i][j];
            return;
        }
        #pragma unroll
        for (int i = 0; i < ROWS; ++i, P += lead)
            #pragma unroll
            for (int j = 0; j < COLUMNS; ++j)
                if (i < height && 32 * j < width) P[32 * j] = of[i][j];
    }
};
