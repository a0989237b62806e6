// Sums become P's dtype where they lie: the results of a row go to the beginning of that row's sums.
// A block takes a row, some cells at a time. What is written lies below what is read, except in the first step, where
// the barrier keeps every thread from writing before all have read.
extern "C" __global__ void round_rows(Source* sums, int rows, int cols, long long lead) {
    for (int row = blockIdx.x; row < rows; row += gridDim.x) {
        Source* from = sums + row * lead;
        Target* to = reinterpret_cast<Target*>(from);
        for (int first = threadIdx.x; first - (int)threadIdx.x < cols; first += 4 * blockDim.x) {
            Source kept[4];
            #pragma unroll
            for (int i = 0; i < 4; ++i) {
                int col = first + i * blockDim.x;
                if (col < cols) kept[i] = from[col];
            }
            __syncthreads();
            #pragma unroll
            for (int i = 0; i < 4; ++i) {
                int col = first + i * blockDim.x;
                if (col < cols) to[col] = convert(kept[i]);
            }
        }
        __syncthreads();
    }
}
