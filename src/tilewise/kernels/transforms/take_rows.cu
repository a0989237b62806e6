// take_rows: line i of the target is line rows[i] of the source; a warp to a line.
//
// Layout: lines of `length` cells, `row` cells apart, their cells `col` apart, to lines of cells side by side, `lead` apart.
// Edges: where rows[i] is no line of the `available` ones, line i is filled with 0. Barrier: none.

extern "C" __global__ void __launch_bounds__(256) take_rows(
    const Cell* from, Cell* to, const Offset* rows, long long count, int length, long long available,
    long long row, long long col, long long lead)
{
    long long line = blockIdx.x * 8ll + threadIdx.x / 32;
    if (line >= count) return;
    long long at = (long long)rows[line];
    bool inside = at >= 0 && at < available;
    for (int i = threadIdx.x % 32; i < length; i += 32) to[line * lead + i] = inside ? from[at * row + i * col] : Cell();
}
