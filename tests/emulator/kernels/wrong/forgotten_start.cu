// The register that sums has no first value.
__global__ void mm(const float* M, const float* N, float* P, int m, int k, int n) {
    int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
    float sum;
    if (row < m && col < n) {
        for (int i = 0; i < k; ++i)
            sum += M[row * k + i] * N[i * n + col]; // fault: uninitialised-read
        P[row * n + col] = sum; // may: wrong-product, uninitialised-read
    }
}
