// few_rows: FEW rows of P or less; the long operand is read once, straight from memory, lanes along its lines.
//
// Names: A is the operand with few rows (FEW x k, any strides), B the long one (k x length, its lines along the length),
//   P is FEW x length by any strides. With SWAPPED, A is N and B is M, both turned: the product's few columns.
// Layout: a warp takes 32 * VECTOR of the length, the block's 8 warps share the k of its piece, one kk each in turn.
//   A lies in shared memory kk by kk, CHUNK of k at a time in two places by turns, so that all lanes read the same words.
//   The long operand's loads of a chunk are on their way before A's, and neither waits for the chunk before.
// Barrier: one a chunk. Behind it the chunk of A is there for all, and the one before is used up. At the end warps' sums
//   meet in shared memory, row by row.

#define WARPS 8
#define CHUNK (WARPS * UNROLL)

struct __align__(VECTOR * sizeof(Element)) Vector { Element lane[VECTOR]; };

extern "C" __global__ void __launch_bounds__(32 * WARPS) few_rows(
    const Element* __restrict__ A, const Element* __restrict__ B, Result* P,
#if ARG
    Where* Pwhere, long long w_row, long long w_col,
#endif
    int rows, int k, int length, long long a_row, long long a_k, long long ldb, long long p_row, long long p_col,
    int k_each, long long plane)
{
    __shared__ __align__(16) Element Ads[2][CHUNK][FEW];
    __shared__ Partial meeting[WARPS][32 * VECTOR];
#if ARG
    __shared__ int meeting_where[WARPS][32 * VECTOR];
#endif
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int first = blockIdx.x * (32 * VECTOR) + lane * VECTOR;
    int begin = blockIdx.z * k_each, stop = min(k, begin + k_each);
    bool whole = first + VECTOR <= length;

    Sum sums[FEW][VECTOR];
    #pragma unroll
    for (int r = 0; r < FEW; ++r)
        #pragma unroll
        for (int v = 0; v < VECTOR; ++v)
            sums[r][v] = start();

    int turn = 0;
    for (int chunk = begin; chunk < stop; chunk += CHUNK, turn ^= 1) {
        Vector word[UNROLL];
        #pragma unroll
        for (int u = 0; u < UNROLL; ++u) {
            int kk = chunk + warp + u * WARPS;  // every WARPS-th is this warp's
            const Element* from = B + kk * ldb + first;
            if (whole && kk < stop) word[u] = *reinterpret_cast<const Vector*>(from);
            else {
                #pragma unroll
                for (int v = 0; v < VECTOR; ++v)
                    word[u].lane[v] = kk < stop && first + v < length ? from[v] : Element();
            }
        }
        for (int i = threadIdx.x; i < CHUNK * FEW; i += 32 * WARPS) {
            // what is outside is never stored; ALONG_K says which way A is read in order
            int kk = ALONG_K ? i % CHUNK : i / FEW, r = ALONG_K ? i / CHUNK : i % FEW;
            Ads[turn][kk][r] = r < rows && chunk + kk < stop ? A[r * a_row + (chunk + kk) * a_k] : Element();
        }
        __syncthreads();
        #pragma unroll
        for (int u = 0; u < UNROLL; ++u) {
            int kk = warp + u * WARPS;
            if (chunk + kk < stop) {
                #pragma unroll
                for (int r = 0; r < FEW; ++r)
                    #pragma unroll
                    for (int v = 0; v < VECTOR; ++v)
                        if (SWAPPED) step(sums[r][v], word[u].lane[v], Ads[turn][kk][r], chunk + kk);
                        else step(sums[r][v], Ads[turn][kk][r], word[u].lane[v], chunk + kk);
            }
        }
    }

    P += blockIdx.z * plane;
#if ARG
    Pwhere += blockIdx.z * plane;
#endif
    #pragma unroll
    for (int r = 0; r < FEW; ++r) {
        if (r >= rows) break;
        __syncthreads();
        #pragma unroll
        for (int v = 0; v < VECTOR; ++v) {
            meeting[warp][lane * VECTOR + v] = finish(sums[r][v]);
#if ARG
            meeting_where[warp][lane * VECTOR + v] = sums[r][v].where;
#endif
        }
        __syncthreads();
        for (int c = threadIdx.x; c < 32 * VECTOR; c += 32 * WARPS) {
            int col = blockIdx.x * (32 * VECTOR) + c;
            if (col >= length) continue;
            Partial value = meeting[0][c];
#if ARG
            Where where = meeting_where[0][c];
            for (int w = 1; w < WARPS; ++w)
                if (AHEAD_OF(meeting[w][c], meeting_where[w][c], value, where)) {
                    value = meeting[w][c];
                    where = meeting_where[w][c];
                }
            Pwhere[r * w_row + col * w_col] = where;
#else
            for (int w = 1; w < WARPS; ++w)
                value = add(value, meeting[w][c]);
#endif
            STORE(P[r * p_row + col * p_col], value);
        }
    }
}
