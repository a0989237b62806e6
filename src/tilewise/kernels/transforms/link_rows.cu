// link_rows: the lines that go to each target line as a linked list: heads[t] is one of them, next[i] another, -1 ends it.
//
// Lists come in any order, for threads hurry each other; who adds them up (add_rows.cu) sorts them first.
// Edges: a line that goes nowhere inside the `count` targets is in no list. Barrier: none.

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
