// swept: members of up to FEW rows. A block sweeps once over a strip of N's columns, line after line as they lie in memory,
// whatever their length: where lines are short, several at a time. Each thread keeps FEW sums of its column.
//
// Layout: any strides, best where lines of N lie side by side. Thread t has column t % across of the strip, and every
//   `at_once`-th k, from t / across on. M lies in shared memory k by k, STAGE of k at a time, the same words for all lanes.
// Edges: threads behind the last whole line, and columns behind N's last, read the last column again and store nothing.
// Barrier: two a stage of M, one when it is there, one before the next is written over it; then the threads of a column
//   meet, and their sums are added up in order of k's rest.

#define STAGE 512
#define AT_ONCE 8  // loads of a thread that are on their way together

struct __align__(FEW * sizeof(Partial) < 16 ? FEW * sizeof(Partial) : 16) Few { Partial of[FEW]; };

extern "C" __global__ void __launch_bounds__(256) swept(
    const Element* __restrict__ M, const Element* __restrict__ N, Result* P, int m, int k, int n,
    long long m_row, long long m_col, long long n_row, long long n_col, long long p_row, long long p_col,
    int across, long long step_M, long long step_N, long long step_P)
{
    wait_for_the_one_before();
    let_the_next_start();
    __shared__ union Shared { Few lines[STAGE]; Partial parts[256][FEW]; } shared;
    int at_once = blockDim.x / across, first = threadIdx.x / across, column = blockIdx.x * across + threadIdx.x % across;
    M += blockIdx.y * step_M;
    N += blockIdx.y * step_N + min(column, n - 1) * n_col;
    P += blockIdx.y * step_P;
    Few sums;
    #pragma unroll
    for (int r = 0; r < FEW; ++r) sums.of[r] = ZERO;

    for (int begin = 0; begin < k; begin += STAGE) {
        int depth = min(STAGE, k - begin);
        for (int at = threadIdx.x; at < depth; at += blockDim.x) {
            Few line;
            #pragma unroll
            for (int r = 0; r < FEW; ++r) line.of[r] = r < m ? widen(M[r * m_row + (begin + at) * m_col]) : (Partial)PAD_M;
            shared.lines[at] = line;
        }
        __syncthreads();
        if (first < at_once)
            for (int at = first; at < depth; at += AT_ONCE * at_once) {
                Element got[AT_ONCE];
                #pragma unroll
                for (int u = 0; u < AT_ONCE; ++u)
                    if (at + u * at_once < depth) got[u] = N[(begin + at + u * at_once) * n_row];
                #pragma unroll
                for (int u = 0; u < AT_ONCE; ++u)
                    if (at + u * at_once < depth) {
                        Few line = shared.lines[at + u * at_once];
                        #pragma unroll
                        for (int r = 0; r < FEW; ++r) sums.of[r] = add(sums.of[r], mul(line.of[r], widen(got[u])));
                    }
            }
        __syncthreads();
    }

    #pragma unroll
    for (int r = 0; r < FEW; ++r) shared.parts[threadIdx.x][r] = sums.of[r];
    __syncthreads();
    for (int cell = threadIdx.x; cell < across * m; cell += blockDim.x) {
        int r = cell / across, c = cell - r * across;
        Partial sum = shared.parts[c][r];
        for (int part = 1; part < at_once; ++part) sum = add(sum, shared.parts[part * across + c][r]);
        int at = blockIdx.x * across + c;
        if (at < n) STORE(P[r * p_row + at * p_col], sum);
    }
}
