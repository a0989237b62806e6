// A warp's 16 rows and TN columns of sums on tensor cores: fragments of 8 columns, 8 words of k at a time. A word is an
// element, or two halves. Sums leave through shared memory, 8 rows at a time, so that neighbours store neighbours.

#define COLUMNS (TN / 8)                       // fragments
#define WORDS (SIZE == 2 ? 2 : 1)              // elements of a word
#define STAGE_PITCH (TN + 8)                   // elements of a staged row: fragments of all rows lie in different banks
#define STAGED (8 * STAGE_PITCH)

struct Sums {
    Sum of[COLUMNS][4];

    __device__ __forceinline__ void take(const Element* rows, const Element* columns, int pitch, int steps) {
        #pragma unroll
        for (int i = 0; i < COLUMNS * 4; ++i) of[i / 4][i % 4] = 0;
        int lane = threadIdx.x % 32, lead = pitch / WORDS;
        const Word* m = reinterpret_cast<const Word*>(rows) + lane / 4 * lead + lane % 4;
        const Word* n = reinterpret_cast<const Word*>(columns) + lane / 4 * lead + lane % 4;
        for (int step = 0; step < steps; ++step, m += 8, n += 8) {
            Word of_m[4] = {m[0], m[8 * lead], m[4], m[8 * lead + 4]};
            #pragma unroll
            for (int j = 0; j < COLUMNS; ++j) {
                Word of_n[2] = {n[j * 8 * lead], n[j * 8 * lead + 4]};
                multiply(of[j], of_m, of_n);
            }
        }
    }

    // To P, which points at the warp's first row and column.
    __device__ __forceinline__ void store(Element* P, long long lead, int height, int width, Element* staged) const {
        int lane = threadIdx.x % 32;
        #pragma unroll
        for (int half = 0; half < 2; ++half) {
            if (half) __syncwarp();  // the rows before have been read
            #pragma unroll
            for (int j = 0; j < COLUMNS; ++j)
                put_pair(staged + lane / 4 * STAGE_PITCH + j * 8 + lane % 4 * 2, of[j][2 * half], of[j][2 * half + 1]);
            __syncwarp();
            store_rows(P + half * 8 * lead, lead, min(8, height - half * 8), width, staged);
        }
    }

#if SIZE == 2
    // 16 bytes at a time, between P's own boundaries.
    static __device__ __forceinline__ void store_rows(
        Element* P, long long lead, int height, int width, const Element* staged)
    {
        const int lanes = TN / 8 < 8 ? 8 : TN / 8;  // to a row; as many as elements at its ends, at least
        int i = threadIdx.x % lanes;
        for (int row = threadIdx.x % 32 / lanes; row < height; row += 32 / lanes)
            store_pieces(P + row * lead, staged + row * STAGE_PITCH, i, width);
    }
#else
    // 16 bytes at a time where all rows start on such a boundary, and else element by element.
    static __device__ __forceinline__ void store_rows(
        Element* P, long long lead, int height, int width, const Element* staged)
    {
        const int each = 16 / SIZE, lanes = TN / each < 32 ? TN / each : 32;
        int lane = threadIdx.x % 32;
        if (width == TN && ((unsigned long long)P | lead * SIZE) % 16 == 0) {
            for (int row = lane / lanes; row < height; row += 32 / lanes)
                #pragma unroll
                for (int i = lane % lanes * each; i < TN; i += lanes * each)
                    *reinterpret_cast<uint4*>(P + row * lead + i) =
                        *reinterpret_cast<const uint4*>(staged + row * STAGE_PITCH + i);
            return;
        }
        #pragma unroll 2
        for (int row = 0; row < height; ++row)
            #pragma unroll
            for (int i = 0; i < TN / 32; ++i)
                if (lane + 32 * i < width) P[row * lead + lane + 32 * i] = staged[row * STAGE_PITCH + lane + 32 * i];
    }
#endif
};
