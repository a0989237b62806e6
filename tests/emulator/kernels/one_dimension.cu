// one-dimensional grid, row and column by division
__global__ void mm(float *a, float *b, float *c, int n) {
  int idx = blockIdx.x*blockDim.x+threadIdx.x;
  if (idx >= n*n) return;
  int i = idx / n, j = idx % n;
  float s = 0;
  for (int k = 0;
  k < n;
  k++) s += a[i*n+k]*b[k*n+j];
  c[idx] = s;
  }
int main(){
  int n=100;
  mm<<<(n*n+255)/256, 256>>>(a,b,c,n);
  }
