// few_dots: at most FEW rows of P; the long operand is read once from global memory, with lanes along k.
//
// Names: see skinny.cuh; B is contiguous along k: a cell of P is a dot product of a row of A and a line of B.
// Layout: a warp takes LINES lines of B, its lanes VECTOR of k each, with UNROLL loads in flight; A is in shared memory row by row, STAGE
//   of k at a time, rows padded against bank conflicts. Lanes' sums are reduced at the end by shuffles: 16 lanes apart, 8, 4, 2, 1.
// Barrier: a stage of A is read before it is overwritten, and complete before it is read.

#define CHUNK (32 * VECTOR * UNROLL)  // of k, a warp's iteration

// shuffle of a value of any size by 4-byte words
template <typename Value>
static __device__ __forceinline__ Value from_lane(Value x, int apart)
{
    constexpr int WORDS = ((int)sizeof(Value) + 3) / 4;
    union { unsigned word[WORDS]; Value value; } moving;
    moving.word[0] = 0;
    moving.value = x;
    #pragma unroll
    for (int w = 0; w < WORDS; ++w)
        moving.word[w] = __shfl_xor_sync(0xffffffffu, moving.word[w], apart);
    return moving.value;
}

extern "C" __global__ void __launch_bounds__(32 * WARPS, RESIDENT) few_dots(
    const Element* __restrict__ A, const Element* __restrict__ B, Result* P,
#if ARG
    Where* Pwhere, long long w_row, long long w_col,
#endif
    int rows, int k, int length, long long a_row, long long a_k, long long ldb, long long p_row, long long p_col,
    int k_each, long long plane)
{
    const bool waits_late = begin_with_wait(k_each);
    __shared__ __align__(16) Element Ads[FEW][STAGE + SPACE];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int first = (blockIdx.x * WARPS + warp) * LINES;
    bool along_k = lies_along_k(a_row, a_k);
    int begin = blockIdx.z * k_each, stop = min(k, begin + k_each);

    Sum sums[FEW][LINES];
    #pragma unroll
    for (int r = 0; r < FEW; ++r)
        #pragma unroll
        for (int c = 0; c < LINES; ++c)
            sums[r][c] = start();

    for (int stage = begin; stage < stop; stage += STAGE) {
        __syncthreads();
        for (int i = threadIdx.x; i < STAGE * FEW; i += 32 * WARPS) {
            InA in(i, along_k);
            Ads[in.r][in.kk] = in.of(A, rows, a_row, a_k, stage, stop);
        }
        __syncthreads();
        #pragma unroll 1
        for (int chunk = 0; chunk < STAGE && stage + chunk < stop; chunk += CHUNK) {
            Vector word[UNROLL][LINES];
            #pragma unroll
            for (int u = 0; u < UNROLL; ++u)
                #pragma unroll
                for (int c = 0; c < LINES; ++c) {
                    int kk = stage + chunk + (u * 32 + lane) * VECTOR;
                    const Element* from = B + (first + c) * ldb + kk;
                    if (first + c < length && kk + VECTOR <= stop) word[u][c] = *reinterpret_cast<const Vector*>(from);
                    else {
                        #pragma unroll
                        for (int v = 0; v < VECTOR; ++v)
                            word[u][c].lane[v] = first + c < length && kk + v < stop ? from[v] : Element();
                    }
                }
            #pragma unroll
            for (int u = 0; u < UNROLL; ++u) {
                int kk = chunk + (u * 32 + lane) * VECTOR;
                bool inside = stage + kk + VECTOR <= stop;
                #pragma unroll
                for (int r = 0; r < FEW; ++r) {
                    Vector left = *reinterpret_cast<const Vector*>(&Ads[r][kk]);
                    #pragma unroll
                    for (int v = 0; v < VECTOR; ++v) {
                        if (inside || stage + kk + v < stop) {
                            #pragma unroll
                            for (int c = 0; c < LINES; ++c)
                                step_on(sums[r][c], left.lane[v], word[u][c].lane[v], stage + kk + v);
                        }
                    }
                }
            }
        }
    }

#if ARG
    Pwhere += blockIdx.z * plane;
#endif
    #pragma unroll
    for (int r = 0; r < FEW; ++r) {
        #pragma unroll
        for (int c = 0; c < LINES; ++c) {
            Partial value = finish(sums[r][c]);
#if ARG
            int where = sums[r][c].where;
#endif
            #pragma unroll
            for (int apart = 16; apart > 0; apart /= 2) {
                Partial other = from_lane(value, apart);
#if ARG
                int other_where = from_lane(where, apart);
                if (AHEAD_OF(other, other_where, value, where)) { value = other; where = other_where; }
#else
                // both lanes add in the same order, the lower lane's first
                value = lane & apart ? add(other, value) : add(value, other);
#endif
            }
            if (lane == 0 && r < rows && first + c < length) {
                store_sum(P, r * p_row + (first + c) * p_col, value, plane);
#if ARG
                Pwhere[r * w_row + (first + c) * w_col] = where;
#endif
            }
        }
    }
    if (waits_late && blockIdx.x + blockIdx.z == 0) wait_on_dependent_grids();
}
