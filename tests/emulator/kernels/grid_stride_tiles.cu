// blocks that take tile after tile
#define T 4
__global__ void mm(float *A, float *B, float *C, int n) {
  __shared__ float a[T][T], b[T][T];
  int tx=threadIdx.x, ty=threadIdx.y;
  int numTiles = (n+T-1)/T;
  
 for (int tile = blockIdx.x;
  tile < numTiles*numTiles;
  tile += gridDim.x) {
  int by = tile / numTiles, bx = tile % numTiles;
  int r=by*T+ty,c=bx*T+tx;
  float s=0;
  for (int p=0;p<numTiles;p++){
  a[ty][tx] = (r<n && p*T+tx<n)? A[r*n+p*T+tx]:0;
  b[ty][tx]=(p*T+ty<n && c<n)?B[(p*T+ty)*n+c]:0;
  __syncthreads();
  for(int k=0;k<T;k++) s+=a[ty][k]*b[k][tx];
  __syncthreads();
  } if(r<n&&c<n) C[r*n+c]=s;
  } }
int main(){
  mm<<<3, dim3(T,T)>>>(x,y,z,n);
  }
