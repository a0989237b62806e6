// Calls multiplyOnDevice as a program would, and compares P with a product on the host.
#include <cmath>
#include <cstdio>

void multiplyOnDevice(const float* M, const float* N, float* P, int m, int k, int n);

int main()
{
    const int m = 5, k = 3, n = 7;
    float M[m * k], N[k * n], P[m * n];
    for (int i = 0; i < m * k; ++i)
        M[i] = i % 4 + 1;
    for (int i = 0; i < k * n; ++i)
        N[i] = i % 5 - 2;
    multiplyOnDevice(M, N, P, m, k, n);
    for (int row = 0; row < m; ++row)
        for (int col = 0; col < n; ++col) {
            float sum = 0;
            for (int i = 0; i < k; ++i)
                sum += M[row * k + i] * N[i * n + col];
            if (!(fabsf(P[row * n + col] - sum) < 1e-3f)) {
                printf("P[%d][%d] is %g, the product is %g\n", row, col, P[row * n + col], sum);
                return 1;
            }
        }
    return 0;
}
