// every product added atomically
__global__ void mm(float *A, float *B, float *C, int n) {
  int i=blockIdx.y*blockDim.y+threadIdx.y, j=blockIdx.x*blockDim.x+threadIdx.x;
  for (int k=0;k<n;k++) if (i<n&&j<n) atomicAdd(&C[i*n+j], A[i*n+k]*B[k*n+j]);
  }
int main(){
  cudaMemset(C,0,4*n*n);
  dim3 t(4,4);
  mm<<<dim3((n+3)/4,(n+3)/4),t>>>(A,B,C,n);
  }
