// pack: any strides and dtype in, any strides and the dtype that is wanted out.
//
// Layout: cell (r, c) of the source lies at r * from_row + c * from_col (any sign, 0 included), of the target likewise.
// ALONG_ROWS swaps the thread axes when the source's rows lie side by side and its columns apart, so that neighbouring
// threads read neighbouring cells. Barrier: none; every cell is one thread's.

extern "C" __global__ void pack(
    const Source* __restrict__ from, Target* __restrict__ to, int rows, int cols,
    long long from_row, long long from_col, long long to_row, long long to_col)
{
    wait_for_the_one_before();
    let_the_next_start();
    int fast = blockIdx.x * blockDim.x + threadIdx.x;
    int slow = blockIdx.y * blockDim.y + threadIdx.y;
    int r = ALONG_ROWS ? fast : slow;
    int c = ALONG_ROWS ? slow : fast;
    if (r < rows && c < cols)
        to[r * to_row + c * to_col] = convert(from[r * from_row + c * from_col]);
}
