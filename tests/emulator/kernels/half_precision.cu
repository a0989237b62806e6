// half in and out, float in between
#include <cuda_fp16.h>
__global__ void mm(const half* A, const half* B, half* C, int N) {
  int r=blockIdx.y*blockDim.y+threadIdx.y,c=blockIdx.x*blockDim.x+threadIdx.x;
  if(r<N&&c<N){
  float s=0;
  for(int k=0;k<N;k++) s+=__half2float(A[r*N+k])*__half2float(B[k*N+c]);
  C[r*N+c]=__float2half(s);} }
