// P comes from cudaMalloc and is never cleared, and the kernel adds onto it.
#include <cuda_runtime.h>
__global__ void mm(float* M, float* N, float* P, int width) {
    int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < width && col < width)
        for (int i = 0; i < width; ++i)
            P[row * width + col] += M[row * width + i] * N[i * width + col]; // fault: uninitialised-read, wrong-product
}
int main() {
    int n = 64;
    float *dM, *dN, *dP;
    cudaMalloc(&dM, n * n * sizeof(float));
    cudaMalloc(&dN, n * n * sizeof(float));
    cudaMalloc(&dP, n * n * sizeof(float));
    dim3 threads(8, 8), blocks((n + 7) / 8, (n + 7) / 8);
    mm<<<blocks, threads>>>(dM, dN, dP, n);
    cudaDeviceSynchronize();
    return 0;
}
