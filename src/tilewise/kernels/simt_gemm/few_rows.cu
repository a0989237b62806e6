// few_rows: FEW rows of P or less; the long operand is read once, straight from memory, lanes along its lines.
//
// Names: as skinny.cuh says; B is k x length, its lines along the length, which is whole VECTORs.
// Layout: a warp takes 32 * VECTOR of the length, the block's 8 warps share the k of its piece, one kk each in turn,
//   UNROLL loads on their way at any time. A lies in shared memory kk by kk, so that all lanes read the same words; a few
//   bytes between its rows spread them over the banks. It comes STAGE of k at a time, the next one while this is used.
// Barrier: a stage of A is there, and all are done with the one before, whose place the next one takes; in between warps
//   run free. At the end their sums meet in shared memory, row by row.

// FEW x VECTOR sums taken on by one kk
static __device__ __forceinline__ void take(Sum (&sums)[FEW][VECTOR], const Element* a, const Vector& word, int at)
{
    #pragma unroll
    for (int r = 0; r < FEW; ++r)
        #pragma unroll
        for (int v = 0; v < VECTOR; ++v)
            step_on(sums[r][v], a[r], word.lane[v], at);
}

typedef Element Rows[STAGE][FEW + SPACE];

// a stage of A, kk by kk; what is outside is left out, and nothing of it is used
static __device__ __forceinline__ void send_stage(
    Rows& to, const Element* A, int rows, long long a_row, long long a_k, int stage, int stop)
{
    bool along_k = lies_along_k(a_row, a_k);
    #pragma unroll 1
    for (int i = threadIdx.x; i < STAGE * FEW; i += 32 * WARPS) {
        InA in(i, along_k);
        if (in.r < rows && stage + in.kk < stop) send(&to[in.kk][in.r], A + in.r * a_row + (stage + in.kk) * a_k);
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
    const bool in_turn = begin_in_turn(k_each);
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

    // every WARPS-th kk is this warp's, and each word's next one is loaded as soon as it is used up
    const Element* line = B + (begin + warp) * ldb + first;
    Vector word[UNROLL];
    #pragma unroll
    for (int u = 0; u < UNROLL; ++u, line += WARPS * ldb)
        if (begin + warp + u * WARPS < stop) word[u] = *reinterpret_cast<const Vector*>(line);
    send_stage(Ads[0], A, rows, a_row, a_k, begin, stop);
    for (int stage = begin, held = 0; stage < stop; stage += STAGE, held ^= 1) {
        wait_for_sent();
        __syncthreads();
        send_stage(Ads[held ^ 1], A, rows, a_row, a_k, stage + STAGE, stop);
        #pragma unroll 1
        for (int at = warp; at < STAGE && stage + at < stop; at += WARPS * UNROLL) {
            if (stage + at + (2 * UNROLL - 1) * WARPS < stop) {  // all of these and of the next are there
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
            leave(P, r * p_row + col * p_col, value, plane);
        }
    }
    if (in_turn && blockIdx.x + blockIdx.z == 0) wait_for_kernel_before();
}
