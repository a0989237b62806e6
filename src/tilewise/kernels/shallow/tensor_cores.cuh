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
            #pragma unroll 2
            for (int row = 0; row < 8; ++row)
                if (half * 8 + row < height)
                    store_row(P + (half * 8 + row) * lead, staged + row * STAGE_PITCH, width);
        }
    }

    static __device__ __forceinline__ void store_row(Element* to, const Element* from, int width) {
        int lane = threadIdx.x % 32;
#if SIZE == 2
        // two at a time, between P's own boundaries of 4 bytes
        int odd = (int)((unsigned long long)to >> 1 & 1);
        #pragma unroll
        for (int i = 0; i < (TN + 63) / 64; ++i) {
            int e = 2 * (lane + 32 * i) - odd;
            if (e >= 0 && e + 1 < width) {
                unsigned pair = odd ? from[e] | (unsigned)from[e + 1] << 16 : *reinterpret_cast<const unsigned*>(from + e);
                *reinterpret_cast<unsigned*>(to + e) = pair;
            } else if (e < width) {
                to[e + (e < 0)] = from[e + (e < 0)];
            }
        }
        if (odd && lane == 0 && width == TN) to[TN - 1] = from[TN - 1];  // the pair it is the first of is another block's
#else
        #pragma unroll
        for (int i = 0; i < TN / 32; ++i)
            if (lane + 32 * i < width) to[lane + 32 * i] = from[lane + 32 * i];
#endif
    }
};
