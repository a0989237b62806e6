// Sums of a warp on plain cores: a lane has ROWS x COLUMNS cells, 4 and 8 apart, and takes 16 bytes of k at a time.

#define ROWS (TM / WARPS_M / 4)
#define COLUMNS (TN / WARPS_N / 8)
#define STEP (16 / SIZE)

struct __align__(16) Several { Element of[STEP]; };

struct Sums {
    Element of[ROWS][COLUMNS];

    __device__ __forceinline__ void clear() {
        #pragma unroll
        for (int i = 0; i < ROWS * COLUMNS; ++i) of[i / COLUMNS][i % COLUMNS] = 0;
    }

    // One phase: the tiles of M and N as they lie in a stage.
    __device__ __forceinline__ void take(const Element* m, const Element* n) {
        int warp = threadIdx.x / 32 % (WARPS_M * WARPS_N), lane = threadIdx.x % 32, own_k = threadIdx.x / GROUP * STEP;
        m += (warp / WARPS_N * (ROWS * 4) + lane / 8) * PITCH + own_k;
        n += (warp % WARPS_N * (COLUMNS * 8) + lane % 8) * PITCH + own_k;
        constexpr int AT_ONCE = ROWS * COLUMNS > 16 ? 1 : 2;  // steps whose words are on their way together
        #pragma unroll AT_ONCE
        for (int k = 0; k < KC; k += STEP * WARPS_K) {
            Several rows[ROWS], columns[COLUMNS];
            #pragma unroll
            for (int i = 0; i < ROWS; ++i) rows[i] = *reinterpret_cast<const Several*>(m + i * 4 * PITCH + k);
            #pragma unroll
            for (int j = 0; j < COLUMNS; ++j) columns[j] = *reinterpret_cast<const Several*>(n + j * 8 * PITCH + k);
            #pragma unroll
            for (int e = 0; e < STEP; ++e)
                #pragma unroll
                for (int i = 0; i < ROWS; ++i)
                    #pragma unroll
                    for (int j = 0; j < COLUMNS; ++j) of[i][j] += rows[i].of[e] * columns[j].of[e];
        }
    }

    // Calls act(row, column, sum) for the cells of the tile that a lane has.
    template <typename Act> __device__ __forceinline__ void each_cell(Act act) const {
        int warp = threadIdx.x / 32 % (WARPS_M * WARPS_N), lane = threadIdx.x % 32;
        int top = warp / WARPS_N * (ROWS * 4) + lane / 8, left = warp % WARPS_N * (COLUMNS * 8) + lane % 8;
        #pragma unroll
        for (int i = 0; i < ROWS; ++i)
            #pragma unroll
            for (int j = 0; j < COLUMNS; ++j) act(top + i * 4, left + j * 8, of[i][j]);
    }
};
