#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

#define TILE_WIDTH 2

__global__ void multiply(const float* M, const float* N, float* P, int m, int k, int n)
{
    __shared__ float Mds[TILE_WIDTH][TILE_WIDTH];
    __shared__ float Nds[TILE_WIDTH][TILE_WIDTH];
    int tx = threadIdx.x, ty = threadIdx.y;
    int row = blockIdx.y * TILE_WIDTH + ty;
    int col = blockIdx.x * TILE_WIDTH + tx;
    float sum = 0;
    for (int p = 0; p < (k + TILE_WIDTH - 1) / TILE_WIDTH; ++p) {
        if (row < m && p * TILE_WIDTH + tx < k)
            Mds[ty][tx] = M[row * k + p * TILE_WIDTH + tx];
        else
            Mds[ty][tx] = 0;
        if (p * TILE_WIDTH + ty < k && col < n)
            Nds[ty][tx] = N[(p * TILE_WIDTH + ty) * n + col];
        else
            Nds[ty][tx] = 0;
        __syncthreads();
        for (int i = 0; i < TILE_WIDTH; ++i)
            sum += Mds[ty][i] * Nds[i][tx];
        __syncthreads();
    }
    if (row < m && col < n)
        P[row * n + col] = sum;
}

// TODO: the kernel is right. Three lines of main are not.
int main()
{
    int m = 5, k = 3, n = 7;
    float* M = (float*)malloc(m * k * sizeof(float));
    float* N = (float*)malloc(k * n * sizeof(float));
    float* P = (float*)malloc(m * n * sizeof(float));
    for (int i = 0; i < m * k; ++i)
        M[i] = i;
    for (int i = 0; i < k * n; ++i)
        N[i] = 1;

    float *Md, *Nd, *Pd;
    cudaMalloc((void**)&Md, m * k * sizeof(float));
    cudaMalloc((void**)&Nd, k * n);
    cudaMalloc((void**)&Pd, m * n * sizeof(float));
    cudaMemcpy(Md, M, m * k * sizeof(float), cudaMemcpyHostToDevice);
    cudaMemcpy(Nd, N, k * n * sizeof(float), cudaMemcpyHostToDevice);

    dim3 block(TILE_WIDTH, TILE_WIDTH);
    dim3 grid((n + TILE_WIDTH - 1) / TILE_WIDTH, (m + TILE_WIDTH - 1) / TILE_WIDTH);
    multiply<<<grid, block>>>(Md, Nd, Pd, m, k, n);
    cudaMemcpy(P, Pd, m * n * sizeof(float), cudaMemcpyHostToDevice);
    printf("P[4][6] = %g\n", P[m * n - 1]);

    cudaFree(Md);
    cudaFree(Nd);
    cudaFree(Pd);
    free(M);
    free(N);
    free(N);
    return 0;
}
