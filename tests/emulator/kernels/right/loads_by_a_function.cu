// A function loads a tile that is its parameter: the tile's side, which no other name has, is no size of the matrices.
#define T 4
__device__ void load(float tile[T][T], const float* from, int row, int col, int rows, int cols) {
    tile[threadIdx.y][threadIdx.x] = row < rows && col < cols ? __ldg(&from[row * cols + col]) : 0;
}
__global__ void product(const float* M, const float* N, float* P, int m, int k, int n) {
    __shared__ float Ms[T][T], Ns[T][T];
    int row = blockIdx.y * T + threadIdx.y, col = blockIdx.x * T + threadIdx.x;
    float sum = 0;
    for (int p = 0; p < k; p += T) {
        load(Ms, M, row, p + threadIdx.x, m, k);
        load(Ns, N, p + threadIdx.y, col, k, n);
        __syncthreads();
        for (int i = 0; i < T; ++i) sum += Ms[threadIdx.y][i] * Ns[i][threadIdx.x];
        __syncthreads();
    }
    if (row < m && col < n) P[row * n + col] = sum;
}
void launch(const float* M, const float* N, float* P, int m, int k, int n) {
    product<<<dim3((n + T - 1) / T, (m + T - 1) / T), dim3(T, T)>>>(M, N, P, m, k, n);
}
