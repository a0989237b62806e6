// Three matrices and a size, as a product has, but they are added.
__global__ void add(const float* A, const float* B, float* C, int n) {
    int i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && j < n) C[i * n + j] = A[i * n + j] + B[i * n + j];
}
