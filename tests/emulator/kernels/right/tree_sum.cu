// A tree sum in shared memory, each round behind its barrier; one block for each element of P.
__global__ void mm(const float* A, const float* B, float* C, int m, int k, int n) {
    __shared__ float part[32];
    int r = blockIdx.y, c = blockIdx.x, t = threadIdx.x;
    float s = 0;
    for (int i = t; i < k; i += 32) s += A[r * k + i] * B[i * n + c];
    part[t] = s;
    __syncthreads();
    for (int half = 16; half > 0; half >>= 1) {
        if (t < half) part[t] += part[t + half];
        __syncthreads();
    }
    if (t == 0) C[r * n + c] = part[0];
}
void run(const float* A, const float* B, float* C, int m, int k, int n) {
    mm<<<dim3(n, m), 32>>>(A, B, C, m, k, n);
}
