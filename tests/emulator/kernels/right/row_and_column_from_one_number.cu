// The row is a quotient and the column what remains of it, once by subtraction and once by %.
__global__ void mm(int n, const double* A, const double* B, double* Y) {
    int at = threadIdx.x + blockIdx.x * blockDim.x;
    int i = at / n;
    int j = at - i * n;
    if (i >= n) return;
    double sum = 0;
    for (int k = 0; k < n; k++) sum += A[i * n + k] * B[k * n + j];
    Y[at / n * n + at % n] = sum;
}
void run(double* A, double* B, double* Y, int n) {
    mm<<<(n * n + 31) / 32, 32>>>(n, A, B, Y);
}
