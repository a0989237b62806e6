// few_rows: at most FEW rows of P; the long operand is read once from global memory, with lanes across k.
//
// Names: see skinny.cuh; B is k x length, contiguous along the length, which is a multiple of VECTOR.
// Layout: a warp takes 32 * VECTOR of the length; the block's 8 warps split the k of its piece, one kk each in turn, with UNROLL loads in
//   flight. A is in shared memory kk by kk, so that all lanes read the same words, rows padded against bank conflicts. It is loaded
//   STAGE of k at a time, the next stage while this one is used.
// Barrier: one a stage: this stage is complete, and the one before has been read. At the end warps' sums are reduced in shared memory, row
//   by row.

// one kk onto FEW x VECTOR sums
static __device__ __forceinline__ void take(Sum (&sums)[FEW][VECTOR], const Element* a, const Vector& word, int at)
{
    #pragma unroll
    for (int r = 0; r < FEW; ++r)
        #pragma unroll
        for (int v = 0; v < VECTOR; ++v)
            step_on(sums[r][v], a[r], word.lane[v], at);
}

typedef Element Rows[STAGE][FEW + SPACE];

// copies a stage of A, kk by kk; elements outside are neither copied nor used
static __device__ __forceinline__ void copy_stage(
    Rows& to, const Element* A, int rows, long long a_row, long long a_k, int stage, int stop)
{
    bool along_k = lies_along_k(a_row, a_k);
    #pragma unroll 1
    for (int i = threadIdx.x; i < STAGE * FEW; i += 32 * WARPS) {
        InA in(i, along_k);
        if (in.r < rows && stage + in.kk < stop) copy_element(&to[in.kk][in.r], A + in.r * a_row + (stage + in.kk) * a_k);
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
    const bool waits_late = begin_with_wait(k_each);
    __shared__ __align__(16) Rows Ads[2];
    __shared__ Partial meeting[WARPS][32 * VECTOR];
#if ARG
    __shared__ int meeting_where[WARPS][32 * VECTOR];
#endif
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int first = min((int)blockIdx.x * (32 * VECTOR) + lane * VECTOR, length - VECTOR);  // beyond the edge: the last, again
    int begin = blockIdx.z * k_each, stop = min(k, begin + k_each);

    Sum sums[FEW][VECTOR];
    #pragma unroll
    for (int r = 0; r < FEW; ++r)
        #pragma unroll
        for (int v = 0; v < VECTOR; ++v)
            sums[r][v] = start();

    // this warp takes every WARPS-th kk; a word's register is reloaded as soon as it was used
    const Element* line = B + (begin + warp) * ldb + first;
    Vector word[UNROLL];
    #pragma unroll
    for (int u = 0; u < UNROLL; ++u, line += WARPS * ldb)
        if (begin + warp + u * WARPS < stop) word[u] = *reinterpret_cast<const Vector*>(line);
    copy_stage(Ads[0], A, rows, a_row, a_k, begin, stop);
    for (int stage = begin, held = 0; stage < stop; stage += STAGE, held ^= 1) {
        wait_for_copies();
        __syncthreads();
        copy_stage(Ads[held ^ 1], A, rows, a_row, a_k, stage + STAGE, stop);
        #pragma unroll 1
        for (int at = warp; at < STAGE && stage + at < stop; at += WARPS * UNROLL) {
            if (stage + at + (2 * UNROLL - 1) * WARPS < stop) {  // these and the next loads are inside
                #pragma unroll
                for (int u = 0; u < UNROLL; ++u, line += WARPS * ldb) {
                    take(sums, Ads[held][at + u * WARPS], word[u], stage + at + u * WARPS);
                    word[u] = *reinterpret_cast<const Vector*>(line);
                }
            } else {
                #pragma unroll
                for (int u = 0; u < UNROLL; ++u, line += WARPS * ldb) {
                    int kk = stage + at + u * WARPS;
                    if (kk < stop) take(sums, Ads[held][at + u * WARPS], word[u], kk);
                    if (kk + UNROLL * WARPS < stop) word[u] = *reinterpret_cast<const Vector*>(line);
                }
            }
        }
    }

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
            store_sum(P, r * p_row + col * p_col, value, plane);
        }
    }
    if (waits_late && blockIdx.x + blockIdx.z == 0) wait_on_dependent_grids();
}
