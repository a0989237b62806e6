"""What `tilewise run` takes for products on a simulated card and on the host: python docs/how/run_speed.py [SIZE ...]

Whole programs, naive and tiled kernels and three loops in a function;
seconds of processor time of the command and its child, best of three, as machine code and as WebAssembly."""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from pathlib import Path

KERNELS = {
    "naive": """
__global__ void product(const float* A, const float* B, float* C, int n) {
  int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < n && col < n) {
    float sum = 0;
    for (int k = 0; k < n; k++) sum += A[row * n + k] * B[k * n + col];
    C[row * n + col] = sum;
  }
}""",
    "tiled": """
__global__ void product(const float* A, const float* B, float* C, int n) {
  __shared__ float As[16][16], Bs[16][16];
  int tx = threadIdx.x, ty = threadIdx.y, row = blockIdx.y * 16 + ty, col = blockIdx.x * 16 + tx;
  float sum = 0;
  for (int p = 0; p < (n + 15) / 16; p++) {
    As[ty][tx] = row < n && p * 16 + tx < n ? A[row * n + p * 16 + tx] : 0.0f;
    Bs[ty][tx] = col < n && p * 16 + ty < n ? B[(p * 16 + ty) * n + col] : 0.0f;
    __syncthreads();
    for (int k = 0; k < 16; k++) sum += As[ty][k] * Bs[k][tx];
    __syncthreads();
  }
  if (row < n && col < n) C[row * n + col] = sum;
}""",
}
MAIN = """
int main(int argc, char** argv) {
  int n = atoi(argv[1]); size_t bytes = (size_t)n * n * sizeof(float);
  float *a = (float*)malloc(bytes), *b = (float*)malloc(bytes), *A, *B, *C;
  for (int i = 0; i < n * n; i++) { a[i] = i % 7 - 3; b[i] = i % 5 - 2; }
  cudaMalloc(&A, bytes); cudaMalloc(&B, bytes); cudaMalloc(&C, bytes);
  cudaMemcpy(A, a, bytes, cudaMemcpyHostToDevice); cudaMemcpy(B, b, bytes, cudaMemcpyHostToDevice);
  product<<<dim3((n + 15) / 16, (n + 15) / 16), dim3(16, 16)>>>(A, B, C, n);
  cudaMemcpy(a, C, bytes, cudaMemcpyDeviceToHost);
  double sum = 0; for (int i = 0; i < n * n; i++) sum += a[i] * (i % 3);
  printf("%.6g\\n", sum);
  cudaFree(A); cudaFree(B); cudaFree(C); free(a); free(b);
}
"""


HOST = """
void product(const float* A, const float* B, float* C, int n) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) {
      float sum = 0;
      for (int k = 0; k < n; k++) sum += A[i * n + k] * B[k * n + j];
      C[i * n + j] = sum;
    }
}
int main(int argc, char** argv) {
  int n = atoi(argv[1]); size_t bytes = (size_t)n * n * sizeof(float);
  float *a = (float*)malloc(bytes), *b = (float*)malloc(bytes), *c = (float*)malloc(bytes);
  for (int i = 0; i < n * n; i++) { a[i] = i % 7 - 3; b[i] = i % 5 - 2; }
  product(a, b, c, n);
  double sum = 0; for (int i = 0; i < n * n; i++) sum += c[i] * (i % 3);
  printf("%.6g\\n", sum);
  free(a); free(b); free(c);
}
"""


def seconds(path: Path, size: int, *options: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "tilewise", "run", *options, "--limit-time", "120", str(path), "--", str(size)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


if __name__ == "__main__":
    sizes = [int(size) for size in sys.argv[1:]] or [1024]
    with tempfile.TemporaryDirectory() as folder:
        for name, text in {**{n: kernel + MAIN for n, kernel in KERNELS.items()}, "host": HOST}.items():
            path = Path(folder) / f"{name}.cu"
            path.write_text(f"#include <stdio.h>\n#include <stdlib.h>{text}")
            for size in sizes:
                native, wasm = (
                    min(seconds(path, size, *options) for _ in range(3)) for options in ([], ["--untrusted"])
                )
                print(f"{name} {size}: {native:.1f} s, as WebAssembly {wasm:.1f} s", flush=True)
