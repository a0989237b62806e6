// finish: converts the closure to its result. "No path" becomes ZERO again: it was ABSENT, half the range, minus negative weights. A
// diagonal that is not ONE is an improving cycle.

extern "C" __global__ void __launch_bounds__(256) finish_closure(const Partial* D, Result* P, int* improves, int n)
{
    long long cell = blockIdx.x * 256ll + threadIdx.x;
    if (cell >= (long long)n * n) return;
    Partial value = D[cell];
    if (cell / n == cell % n && value != ONE) *improves = 1;
    P[cell] = TO_RESULT(value);
}
