// The kernel and host function of the course notes on tiled multiplication with a Matrix struct.
__global__ void MatrixMulKernel(Matrix M, Matrix N, Matrix P) 

{ 

__shared__ float tileMs[TILE_WIDTH][TILE_WIDTH]; 

__shared__ float tileNs[TILE_WIDTH][TILE_WIDTH]; 

 

int tx = threadIdx.x; int ty = threadIdx.y; 

int bx = blockIdx.x; int by = blockIdx.y; 

 

int row = by * TILE_WIDTH + ty; 

int column = bx * TILE_WIDTH + tx; 

 

float pValue = 0; 

 

for(int i=0;i<ceilf(M.width/(float)TILE_WIDTH);i++){ 

if(row < M.height && (i*TILE_WIDTH + tx)<M.width) 

tileMs[ty][tx] = M.elements[row*M.width + i*TILE_WIDTH + tx]; 

else 

tileMs[ty][tx] = 0; 

if(column < N.width && (i*TILE_WIDTH + ty)<N.height) 

tileNs[ty][tx] = N.elements[(i*TILE_WIDTH + ty)*N.width + column]; 

else 

tileNs[ty][tx] = 0; 

 

__syncthreads(); 

 

for(int j=0;j<TILE_WIDTH;j++) 

pValue += tileMs[ty][j] * tileNs[j][tx]; 

 

__syncthreads(); 

} 

if(row < P.height && column < P.width) 

P.elements[row*P.width+column] = pValue; 

} 

 


void MatrixMulOnDevice(const Matrix M, const Matrix N, Matrix P) 

{ 

    Matrix Md = AllocateDeviceMatrix(M); 

    CopyToDeviceMatrix(Md, M); 

    Matrix Nd = AllocateDeviceMatrix(N); 

    CopyToDeviceMatrix(Nd, N); 

 

    Matrix Pd = AllocateDeviceMatrix(P); 

    CopyToDeviceMatrix(Pd, P);  

 

    dim3 gridSize, blockSize; 

    blockSize.x = blockSize.y = TILE_WIDTH; blockSize.z = 1; 

    gridSize.x = ceil(P.width/(float)blockSize.x); 

    gridSize.y = ceil(P.height/(float)blockSize.y); 

    gridSize.z = 1; 

 

    cudaEvent_t start, stop; 

    cudaEventCreate(&start); 

    cudaEventCreate(&stop); 

    cudaEventRecord(start, 0); 

 

    MatrixMulKernel<<<gridSize, blockSize>>>(Md, Nd, Pd); 

 

    cudaEventRecord(stop, 0); 

    cudaEventSynchronize(stop); 

 

    float gpu_time = 0.0f; 

    cudaEventElapsedTime(&gpu_time, start, stop); 

    printf("🚀 GPU Time: %.4f ms\n", gpu_time); 

 

    cudaEventDestroy(start); 

    cudaEventDestroy(stop); 

 

    CopyFromDeviceMatrix(P, Pd);  

 

    FreeDeviceMatrix(&Md); 

    FreeDeviceMatrix(&Nd); 

    FreeDeviceMatrix(&Pd); 

} 
