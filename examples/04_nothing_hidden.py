"""Run CUDA C with no GPU: trace every thread, and report every fault by line."""

import tilewise as tw

print(tw.trace("tiled_edges", shape=(3, 3, 3), tile=2, blocks=[(1, 1)]))

UNGUARDED = """
__global__ void multiply(float* M, float* N, float* P, int width) {
    int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    for (int i = 0; i < width; ++i) sum += M[row * width + i] * N[i * width + col];
    P[row * width + col] = sum;
}
"""
report = tw.check(UNGUARDED, shape=(3, 3, 3), tile=2)
for finding in report.seen:
    print(finding)
assert {str(f.kind) for f in report.seen} >= {"silent-overrun", "out-of-bounds", "race"}
assert tw.check("tiled_edges", shape=(3, 3, 3), tile=2).ok
