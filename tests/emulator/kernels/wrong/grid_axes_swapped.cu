// The grid's x covers the rows and its y the columns, but the kernel takes x for the column.
#define T 8
__global__ void mm(const float* A, const float* B, float* C, int m, int k, int n) {
    int r = blockIdx.y * T + threadIdx.y, c = blockIdx.x * T + threadIdx.x;
    if (r < m && c < n) {
        float s = 0;
        for (int i = 0; i < k; ++i) s += A[r * k + i] * B[i * n + c];
        C[r * n + c] = s;
    }
}
void multiply(const float* A, const float* B, float* C, int m, int k, int n) {
    dim3 grid((m + T - 1) / T, (n + T - 1) / T);
    dim3 block(T, T);
    mm<<<grid, block>>>(A, B, C, m, k, n); // fault: uncovered
}
