// few_rows: FEW rows of P or less; the long operand is read once, straight from memory, lanes along its lines.
//
// Names: as few.cuh says; B is k x length, its lines along the length.
// Layout: a warp takes 32 * VECTOR of the length, the block's 8 warps share the k of its piece, one kk each in turn,
//   UNROLL loads on their way while the ones before are stepped. A lies in shared memory kk by kk, STAGE of k at a time,
//   so that all lanes read the same words; a few bytes between its rows spread them over the banks.
// Barrier: a stage of A is used up before it is written over, and whole before it is read; in between warps run free. At
//   the end their sums meet in shared memory, row by row.

static __device__ __forceinline__ void load(
    Vector (&word)[UNROLL], const Element* B, long long ldb, int kk, int stop, int first, int length)
{
    #pragma unroll
    for (int u = 0; u < UNROLL; ++u) {
        int at = kk + u * WARPS;  // every WARPS-th is this warp's
        const Element* from = B + at * ldb + first;
        if (first + VECTOR <= length && at < stop) word[u] = *reinterpret_cast<const Vector*>(from);
        else {
            #pragma unroll
            for (int v = 0; v < VECTOR; ++v)
                word[u].lane[v] = at < stop && first + v < length ? from[v] : Element();
        }
    }
}

extern "C" __global__ void __launch_bounds__(32 * WARPS, RESIDENT) few_rows(
    const Element* __restrict__ A, const Element* __restrict__ B, Result* P,
#if ARG
    Where* Pwhere, long long w_row, long long w_col,
#endif
    int rows, int k, int length, long long a_row, long long a_k, long long ldb, long long p_row, long long p_col,
    int k_each, long long plane)
{
    __shared__ __align__(16) Element Ads[STAGE][FEW + SPACE];
    __shared__ Partial meeting[WARPS][32 * VECTOR];
#if ARG
    __shared__ int meeting_where[WARPS][32 * VECTOR];
#endif
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int first = blockIdx.x * (32 * VECTOR) + lane * VECTOR;
    int begin = blockIdx.z * k_each, stop = min(k, begin + k_each);

    Sum sums[FEW][VECTOR];
    #pragma unroll
    for (int r = 0; r < FEW; ++r)
        #pragma unroll
        for (int v = 0; v < VECTOR; ++v)
            sums[r][v] = start();

    Vector word[UNROLL], next[UNROLL];
    load(word, B, ldb, begin + warp, stop, first, length);
    for (int stage = begin; stage < stop; stage += STAGE) {
        __syncthreads();
        for (int i = threadIdx.x; i < STAGE * FEW; i += 32 * WARPS) {
            InA in(i);
            Ads[in.kk][in.r] = in.of(A, rows, a_row, a_k, stage, stop);
        }
        __syncthreads();
        #pragma unroll 1
        for (int at = warp; at < STAGE && stage + at < stop; at += WARPS * UNROLL) {
            load(next, B, ldb, stage + at + WARPS * UNROLL, stop, first, length);
            #pragma unroll
            for (int u = 0; u < UNROLL; ++u) {
                int kk = at + u * WARPS;
                if (stage + kk < stop) {
                    #pragma unroll
                    for (int r = 0; r < FEW; ++r)
                        #pragma unroll
                        for (int v = 0; v < VECTOR; ++v)
                            step_on(sums[r][v], Ads[kk][r], word[u].lane[v], stage + kk);
                }
            }
            #pragma unroll
            for (int u = 0; u < UNROLL; ++u) word[u] = next[u];
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
