// register_tiled: a thread keeps an 8 x 8 piece of P in registers; 16 values read from shared memory serve 64 steps.
//
// Layout: a block of TILE_WIDTH x TILE_WIDTH threads makes SIDE x SIDE of P, SIDE = 8 * TILE_WIDTH, PHASE_DEPTH of k a phase.
//   Mds lies column by column, so that a thread reads its rows as Quads; 4 cells of padding spread its banks.
//   Thread (ty, tx) owns rows 4*ty .. 4*ty+3 and those SIDE/2 further down, and columns likewise: neighbours touch
//   neighbouring Quads, which is free of bank conflicts.
// Barrier: after the first, both strips are loaded or filled; after the second, every thread has used them.
// ALIGNED says that every row of M and N starts on a Quad's boundary: then four elements come in one load.

#define SIDE (8 * TILE_WIDTH)
#define THREADS (TILE_WIDTH * TILE_WIDTH)

struct __align__(ELEMENT_QUAD) ElementQuad { Element lane[4]; };
struct __align__(PARTIAL_QUAD) PartialQuad { Partial lane[4]; };

extern "C" __global__ void __launch_bounds__(THREADS) register_tiled(
    const Element* __restrict__ M, const Element* __restrict__ N, Result* __restrict__ P,
    int m, int k, int n, Index ldm, Index ldn, Index ldp)
{
    __shared__ __align__(16) Partial Mds[PHASE_DEPTH][SIDE + 4];
    __shared__ __align__(16) Partial Nds[PHASE_DEPTH][SIDE + 4];

    int tx = threadIdx.x, ty = threadIdx.y;
    int thread = ty * TILE_WIDTH + tx;
    int top = blockIdx.y * SIDE, left = blockIdx.x * SIDE;

    Partial Pvalue[8][8];
    #pragma unroll
    for (int r = 0; r < 8; ++r)
        #pragma unroll
        for (int c = 0; c < 8; ++c)
            Pvalue[r][c] = ZERO;

    for (int start = 0; start < k; start += PHASE_DEPTH) {
        // M: PHASE_DEPTH / 4 quads a row, stored column by column
        #pragma unroll
        for (int q = thread; q < SIDE * PHASE_DEPTH / 4; q += THREADS) {
            int r = q / (PHASE_DEPTH / 4), i = q % (PHASE_DEPTH / 4) * 4;
            if (ALIGNED && top + r < m && start + i + 3 < k) {
                ElementQuad quad = *reinterpret_cast<const ElementQuad*>(&M[(top + r) * ldm + start + i]);
                #pragma unroll
                for (int j = 0; j < 4; ++j)
                    Mds[i + j][r] = widen(quad.lane[j]);
            } else {
                #pragma unroll
                for (int j = 0; j < 4; ++j) {
                    Partial value = PAD_M;
                    if (top + r < m && start + i + j < k)
                        value = widen(M[(top + r) * ldm + start + i + j]);
                    Mds[i + j][r] = value;
                }
            }
        }
        // N: SIDE / 4 quads a row, stored as they lie
        #pragma unroll
        for (int q = thread; q < SIDE * PHASE_DEPTH / 4; q += THREADS) {
            int i = q / (SIDE / 4), c = q % (SIDE / 4) * 4;
            PartialQuad values;
            if (ALIGNED && start + i < k && left + c + 3 < n) {
                ElementQuad quad = *reinterpret_cast<const ElementQuad*>(&N[(start + i) * ldn + left + c]);
                #pragma unroll
                for (int j = 0; j < 4; ++j)
                    values.lane[j] = widen(quad.lane[j]);
            } else {
                #pragma unroll
                for (int j = 0; j < 4; ++j) {
                    values.lane[j] = PAD_N;
                    if (start + i < k && left + c + j < n)
                        values.lane[j] = widen(N[(start + i) * ldn + left + c + j]);
                }
            }
            *reinterpret_cast<PartialQuad*>(&Nds[i][c]) = values;
        }
        __syncthreads();

        #pragma unroll
        for (int i = 0; i < PHASE_DEPTH; ++i) {
            PartialQuad Mvalue[2], Nvalue[2];
            #pragma unroll
            for (int h = 0; h < 2; ++h) {
                Mvalue[h] = *reinterpret_cast<const PartialQuad*>(&Mds[i][h * (SIDE / 2) + 4 * ty]);
                Nvalue[h] = *reinterpret_cast<const PartialQuad*>(&Nds[i][h * (SIDE / 2) + 4 * tx]);
            }
            #pragma unroll
            for (int r = 0; r < 8; ++r)
                #pragma unroll
                for (int c = 0; c < 8; ++c)
                    Pvalue[r][c] = add(Pvalue[r][c], mul(Mvalue[r / 4].lane[r % 4], Nvalue[c / 4].lane[c % 4]));
        }
        __syncthreads();
    }

    #pragma unroll
    for (int r = 0; r < 8; ++r)
        #pragma unroll
        for (int c = 0; c < 8; ++c) {
            int row = top + r / 4 * (SIDE / 2) + 4 * ty + r % 4;
            int col = left + c / 4 * (SIDE / 2) + 4 * tx + c % 4;
            if (row < m && col < n)
                STORE(P[row * ldp + col], Pvalue[r][c]);
        }
}
