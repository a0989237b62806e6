// A tree sum in shared memory whose rounds are not separated.
__global__ void row_sum(const float* M, float* out, int n) {
    __shared__ float part[64];
    int t = threadIdx.x;
    part[t] = M[blockIdx.x * n + t];
    __syncthreads();
    for (int half = 32; half > 0; half /= 2)
        if (t < half) part[t] += part[t + half]; // fault: race
    if (t == 0) out[blockIdx.x] = part[0];
}
