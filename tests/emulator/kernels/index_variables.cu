// flat indices kept in variables
__global__ void mm(float *A, float *B, float *C, int n) {
  int row=blockIdx.y*blockDim.y+threadIdx.y, col=blockIdx.x*blockDim.x+threadIdx.x;
  int ia = row*n, ib = col;
  float s=0;
  if (row<n && col<n) {
  for (int k=0;k<n;++k, ia++, ib+=n) s += A[ia]*B[ib];
  C[row*n+col]=s;
  } }
