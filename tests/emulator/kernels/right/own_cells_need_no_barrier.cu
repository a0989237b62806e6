// Each thread reads back only what it wrote itself.
__global__ void mm(const float* M, const float* N, float* P, int width) {
    __shared__ float sums[8][8];
    int row = blockIdx.y * 8 + threadIdx.y, col = blockIdx.x * 8 + threadIdx.x;
    sums[threadIdx.y][threadIdx.x] = 0;
    if (row >= width || col >= width) return;
    for (int i = 0; i < width; ++i)
        sums[threadIdx.y][threadIdx.x] += M[row * width + i] * N[i * width + col];
    P[row * width + col] = sums[threadIdx.y][threadIdx.x];
}
void run(float* M, float* N, float* P, int width) {
    mm<<<dim3((width + 7) / 8, (width + 7) / 8), dim3(8, 8)>>>(M, N, P, width);
}
