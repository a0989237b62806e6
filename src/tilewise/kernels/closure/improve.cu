// improve: stores strictly better values with their predecessors: the node before the target on the path from the winning k.
// `steps`: predecessors of the rows that k counts.

extern "C" __global__ void __launch_bounds__(256) improve(
    Partial* D, long long* before, const Partial* __restrict__ made, const long long* __restrict__ won,
    const long long* __restrict__ steps, int rows, int cols, long long lead)
{
    long long cell = blockIdx.x * 256ll + threadIdx.x;
    if (cell >= (long long)rows * cols) return;
    long long row = cell / cols, col = cell % cols, at = row * lead + col;
    Partial old = D[at], total = add(old, made[cell]);
    if (total != old) {
        D[at] = total;
        before[at] = steps[won[cell] * cols + col];
    }
}
