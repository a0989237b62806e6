// Blocks split the sum over k among them and add without atomics.
__global__ void split_k(const float* A, const float* B, float* C, int n) {
    int r = threadIdx.y, c = threadIdx.x;
    float s = 0;
    for (int i = blockIdx.x; i < n; i += gridDim.x) s += A[r * n + i] * B[i * n + c];
    C[r * n + c] += s; // fault: race, uninitialised-read, wrong-product
}
void run(float* A, float* B, float* C) {
    split_k<<<2, dim3(8, 8)>>>(A, B, C, 8);
}
