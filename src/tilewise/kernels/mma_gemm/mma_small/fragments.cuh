// Sums of a warp on tensor cores: fragments of 16 rows of M and 8 columns of N, 8 of k at a time.

#define MATS (TM / WARPS_M / 16)
#define COLS (TN / WARPS_N / 8)

static __device__ __forceinline__ Word as_word(Element x) {
#if SIZE == 8
    return x;
#else
    Word word = __float_as_uint(x);
    round_word(word);
    return word;
#endif
}

struct Sums {
    Element of[MATS][COLS][4];

    __device__ __forceinline__ void clear() {
        #pragma unroll
        for (int i = 0; i < MATS * COLS * 4; ++i) of[i / (COLS * 4)][i / 4 % COLS][i % 4] = 0;
    }

    // One phase: the tiles of M and N as they lie in a stage.
    __device__ __forceinline__ void take(const Element* m, const Element* n) {
        int warp = threadIdx.x / 32 % (WARPS_M * WARPS_N), lane = threadIdx.x % 32, own_k = threadIdx.x / GROUP * 8 + lane % 4;
        m += (warp / WARPS_N * (MATS * 16) + lane / 4) * PITCH + own_k;
        n += (warp % WARPS_N * (COLS * 8) + lane / 4) * PITCH + own_k;
        #pragma unroll
        for (int k = 0; k < KC; k += 8 * WARPS_K) {
            Word rows[MATS][4], columns[COLS][2];
            #pragma unroll
            for (int i = 0; i < MATS; ++i)
                #pragma unroll
                for (int w = 0; w < 4; ++w) rows[i][w] = as_word(m[(i * 16 + w % 2 * 8) * PITCH + k + w / 2 * 4]);
            #pragma unroll
            for (int j = 0; j < COLS; ++j)
                #pragma unroll
                for (int w = 0; w < 2; ++w) columns[j][w] = as_word(n[j * 8 * PITCH + k + w * 4]);
            #pragma unroll
            for (int i = 0; i < MATS; ++i)
                #pragma unroll
                for (int j = 0; j < COLS; ++j) multiply(of[i][j], rows[i], columns[j]);
        }
    }

    // Calls act(row, column, sum) for the cells of the tile that a lane has.
    template <typename Act> __device__ __forceinline__ void each_cell(Act act) const {
        int warp = threadIdx.x / 32 % (WARPS_M * WARPS_N), lane = threadIdx.x % 32;
        int top = warp / WARPS_N * (MATS * 16) + lane / 4, left = warp % WARPS_N * (COLS * 8) + lane % 4 * 2;
        #pragma unroll
        for (int i = 0; i < MATS; ++i)
            #pragma unroll
            for (int j = 0; j < COLS; ++j)
                #pragma unroll
                for (int e = 0; e < 4; ++e) act(top + i * 16 + e / 2 * 8, left + j * 8 + e % 2, of[i][j][e]);
    }
};
