// type and int template, padded and volatile tiles, auto
template <typename T, int BS = 8> __global__ void mm(const T* __restrict__ A, const T* __restrict__ B, T* __restrict__ C, const int M, const int N, const int K) {
 __shared__ volatile T a[BS][BS];
  __shared__ T b[BS][BS + 1];
  const unsigned int r = blockIdx.y*BS+threadIdx.y, c = blockIdx.x*BS+threadIdx.x;
  T s = T(0);
 for (size_t p = 0;
  p < (K+BS-1)/BS;
  p++) {
  auto ka = p*BS+threadIdx.x;
  auto kb = p*BS+threadIdx.y;
 a[threadIdx.y][threadIdx.x] = (r < M && ka < K) ? A[r*K+ka] : T(0);
  b[threadIdx.y][threadIdx.x] = (kb < K && c < N) ? B[kb*N+c] : static_cast<T>(0);
  __syncthreads();
 #pragma unroll 4
 for (int k=0;k<BS;k++) s += a[threadIdx.y][k]*b[k][threadIdx.x];
  __syncthreads();
  }
 if (r < M && c < N) C[r*N+c] = s;
  }
 void go(double* a,double*b,double*c,int M,int N,int K){
  constexpr int BS=8;
  dim3 blk(BS,BS);
  dim3 grd((N+BS-1)/BS,(M+BS-1)/BS);
  mm<double,BS><<<grd,blk>>>(a,b,c,M,N,K);
  cudaDeviceSynchronize();
  }
