// lost: marks sources with a target whose predecessors do not lead back to them, by pointer doubling.
//
// Layout: a block takes a row at a time; its two scratch rows hold where each target is after 1, 2, 4, ... steps.
// Barrier: a doubling is whole before the next reads it.

extern "C" __global__ void __launch_bounds__(256) lost(
    const long long* __restrict__ before, int* scratch, int* is_lost, int n, int doublings)
{
    int* ahead = scratch + blockIdx.x * 2ll * n;
    int* next = ahead + n;
    for (int row = blockIdx.x; row < n; row += gridDim.x) {
        const long long* mine = before + row * (long long)n;
        for (int j = threadIdx.x; j < n; j += 256)
            ahead[j] = mine[j] < 0 ? j : (int)mine[j];
        for (int turn = 0; turn < doublings; ++turn) {
            __syncthreads();
            for (int j = threadIdx.x; j < n; j += 256)
                next[j] = ahead[ahead[j]];
            int* other = ahead;
            ahead = next;
            next = other;
        }
        __syncthreads();
        for (int j = threadIdx.x; j < n; j += 256)
            if (mine[j] >= 0 && ahead[j] != row) is_lost[row] = 1;
        __syncthreads();
    }
}
