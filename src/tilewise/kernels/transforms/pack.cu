// pack: a copy with any strides and dtypes of source and target.
//
// Layout: cell (r, c) of the source lies at r * from_row + c * from_col (any sign, 0 included), of the target likewise;
// the source lies side by side along c, or nowhere. blockIdx.z is the member of a stack. A block takes 32x32 cells.
// TRANSPOSES: the target lies side by side along r. Cells then pass through shared memory, so that neighbouring threads
// both read and write neighbouring cells. Barrier: before a tile is written out, and before the next one is read.

#define SIDE 32

extern "C" __global__ void pack(
    const Source* __restrict__ from, Target* __restrict__ to, int rows, int cols,
    long long from_row, long long from_col, long long to_row, long long to_col, long long from_member, long long to_member)
{
    wait_on_dependent_grids();
    launch_dependent_grids();
    from += blockIdx.z * from_member;
    to += blockIdx.z * to_member;
    int left = blockIdx.x * SIDE;
    for (long long top = (long long)blockIdx.y * SIDE; top < rows; top += (long long)gridDim.y * SIDE) {
#if TRANSPOSES
        __shared__ Target tile[SIDE][SIDE + 1];
        for (int i = threadIdx.y; i < SIDE; i += blockDim.y) {
            long long r = top + i, c = left + (int)threadIdx.x;
            if (r < rows && c < cols) tile[i][threadIdx.x] = convert(from[r * from_row + c * from_col]);
        }
        __syncthreads();
        for (int i = threadIdx.y; i < SIDE; i += blockDim.y) {
            long long r = top + (int)threadIdx.x, c = left + i;
            if (r < rows && c < cols) to[r * to_row + c * to_col] = tile[threadIdx.x][i];
        }
        __syncthreads();
#else
        for (int i = threadIdx.y; i < SIDE; i += blockDim.y) {
            long long r = top + i, c = left + (int)threadIdx.x;
            if (r < rows && c < cols) to[r * to_row + c * to_col] = convert(from[r * from_row + c * from_col]);
        }
#endif
    }
}
