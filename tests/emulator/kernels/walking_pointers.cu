// pointers that walk along M and down N
__global__ void mm(float *A, float *B, float *C, int n) {
  int row=blockIdx.y*blockDim.y+threadIdx.y, col=blockIdx.x*blockDim.x+threadIdx.x;
  if (row<n && col<n) {
  float* a = A + row*n;
  float *b = B + col;
  float s=0;
  for (int k=0;k<n;++k) {
  s += *a++ * *b;
  b += n;
  } C[row*n+col]=s;
  } }
