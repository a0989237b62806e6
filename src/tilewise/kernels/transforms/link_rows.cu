// link_rows: a linked list of the lines of each target line: heads[t] is the first, next[i] the one after i, -1 the end.
//
// The order of a list depends on timing; add_rows.cu sorts it.
// Edges: a line with a target outside the `count` ones is in no list. Barrier: none.

extern "C" __global__ void __launch_bounds__(256) no_rows(int* heads, int count)
{
    int target = blockIdx.x * 256 + threadIdx.x;
    if (target < count) heads[target] = -1;
}

extern "C" __global__ void __launch_bounds__(256) link_rows(const Offset* rows, int* heads, int* next, int lines, int count)
{
    int line = blockIdx.x * 256 + threadIdx.x;
    if (line >= lines) return;
    long long target = (long long)rows[line];
    if (target >= 0 && target < count) next[line] = atomicExch(&heads[(int)target], line);
}
