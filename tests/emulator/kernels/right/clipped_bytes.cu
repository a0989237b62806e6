// Small integers that are clipped, not wrapped, where the sum does not fit.
#include <stdint.h>
__global__ void mm(const int8_t* A, const int8_t* B, int8_t* C, int num_rows_A, int num_cols_A, int num_cols_B) {
    int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= num_rows_A || col >= num_cols_B) return;
    int32_t sum = 0;
    for (int k = 0; k < num_cols_A; k++) sum += (int32_t)A[row * num_cols_A + k] * (int32_t)B[k * num_cols_B + col];
    C[row * num_cols_B + col] = (int8_t)max(-127, min(127, sum));
}
