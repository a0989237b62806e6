// 64 x 64 threads are more than a block may have: the launch fails and nothing is computed.
__global__ void mm(const float* A, const float* B, float* C, int n) {
    int r = blockIdx.y * 64 + threadIdx.y, c = blockIdx.x * 64 + threadIdx.x;
    if (r < n && c < n) {
        float s = 0;
        for (int i = 0; i < n; ++i) s += A[r * n + i] * B[i * n + c];
        C[r * n + c] = s;
    }
}
void multiply(float* A, float* B, float* C, int n) {
    mm<<<dim3((n + 63) / 64, (n + 63) / 64), dim3(64, 64)>>>(A, B, C, n); // fault: launch
}
