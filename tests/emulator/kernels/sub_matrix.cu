// Tiles of a matrix as matrices of their own: structs with a stride, copied, returned and passed on.
#define BLOCK_SIZE 4

struct Matrix { int width; int height; int stride; float *elements; };

__device__ Matrix tileOf(Matrix whole, int down, int across)
{
    Matrix tile;
    tile.width = tile.height = BLOCK_SIZE;
    tile.stride = whole.stride;
    tile.elements = &whole.elements[whole.stride * BLOCK_SIZE * down + BLOCK_SIZE * across];
    return tile;
}

__device__ float read(const Matrix A, int row, int col) { return A.elements[row * A.stride + col]; }

__device__ void write(Matrix A, int row, int col, float value) { A.elements[row * A.stride + col] = value; }

__global__ void multiply(Matrix M, Matrix N, Matrix P)
{
    int row = threadIdx.y, col = threadIdx.x;
    float total = 0;
    for (int p = 0; p < M.width / BLOCK_SIZE; ++p) {
        Matrix tileM = tileOf(M, blockIdx.y, p);
        Matrix tileN = tileOf(N, p, blockIdx.x);
        __shared__ float Ms[BLOCK_SIZE][BLOCK_SIZE];
        __shared__ float Ns[BLOCK_SIZE][BLOCK_SIZE];
        Ms[row][col] = read(tileM, row, col);
        Ns[row][col] = read(tileN, row, col);
        __syncthreads();
        for (int i = 0; i < BLOCK_SIZE; ++i)
            total += Ms[row][i] * Ns[i][col];
        __syncthreads();
    }
    write(tileOf(P, blockIdx.y, blockIdx.x), row, col, total);
}

void launch(const Matrix M, const Matrix N, Matrix P)
{
    Matrix d_M, d_N, d_P;
    d_M.width = d_M.stride = M.width;
    d_M.height = M.height;
    size_t size = M.width * M.height * sizeof(float);
    cudaMalloc(&d_M.elements, size);
    dim3 block(BLOCK_SIZE, BLOCK_SIZE);
    dim3 grid(N.width / block.x, M.height / block.y);
    multiply<<<grid, block>>>(d_M, d_N, d_P);
}
