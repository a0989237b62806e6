// ceil of a division of two ints: the division has rounded down before ceil sees it.
#include <math.h>
__global__ void mm(const float* A, const float* B, float* C, int n) {
    int r = blockIdx.y * blockDim.y + threadIdx.y, c = blockIdx.x * blockDim.x + threadIdx.x;
    if (r < n && c < n) {
        float s = 0;
        for (int i = 0; i < n; ++i) s += A[r * n + i] * B[i * n + c];
        C[r * n + c] = s;
    }
}
void multiply(float* A, float* B, float* C, int n) {
    dim3 block(16, 16);
    dim3 grid(ceil(n / 16), ceil(n / 16));
    mm<<<grid, block>>>(A, B, C, n); // fault: uncovered, launch
}
