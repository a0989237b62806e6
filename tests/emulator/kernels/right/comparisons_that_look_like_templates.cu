// i < n && j > (m) is a comparison, and a shift is no pair of brackets.
__global__ void mm(const float* A, const float* B, float* C, int m, int k, int n) {
    int i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;
    int zero = k >> 31;
    if (i < m && j > (zero - 1) && j < n) {
        float s = 0;
        for (int l = zero; l < (k << 1) >> 1; ++l) s += A[i * k + l] * B[l * n + j];
        C[i * n + j] = s;
    }
}
