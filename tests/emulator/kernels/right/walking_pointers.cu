// Pointers walk along the row and down the column; no index is ever multiplied inside the loop.
__global__ void mm(const float* A, const float* B, float* C, int m, int k, int n) {
    int r = blockIdx.y * blockDim.y + threadIdx.y, c = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= m || c >= n) return;
    const float* a = A + r * k;
    const float* b = B + c;
    float s = 0;
    for (int i = 0; i < k; ++i, ++a, b += n) s += *a * *b;
    *(C + r * n + c) = s;
}
