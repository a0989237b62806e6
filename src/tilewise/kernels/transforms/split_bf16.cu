// split: float32 as three bfloat16 planes that add up to it, in wgmma's layout.
//
// Parts: first = bf16(x), second = bf16(x - first), third = bf16(x - first - second); both differences are exact.
// Layout: planes lie block of k by block of k (32 each), plane by plane, line by line: the 32 k of a line are 64 bytes,
//   their 16-byte pieces swizzled as wgmma's 64-byte mode has it. So a tile of neighbouring lines is contiguous, and no
//   descriptor is needed to fetch it. Lines are the rows of M or the columns of N, padded to 32 of them; they and the last
//   k are filled with 0.
//   A warp takes 32 lines x 32 k. Where k lies side by side it reads 32 k of a line at a time and turns them in shared
//   memory; else it reads 32 lines at a time, has the 32 k of one line in a lane, and turns the finished pieces.
// Stacks: a block's member is blockIdx.y; an operand that all of them share is split by the first one's blocks.
// Strides: any. Barrier: none; a warp turns its own piece.
// Measuring: without a place for the planes only the largest magnitude is looked for.
// Largest: each block leaves the largest magnitude it met in either operand, as bits, so Inf and NaN are the largest of
//   all; bf16x6.cu decides by it whether the parts are safe. With BY_LINES also that of each line of M in each 32 of k, for
//   unsafe_rows.cu.

#define LINES 32
#define DEPTH 32
#define PITCH (DEPTH + 4)  // floats from line to line: 16-byte reads of a transposed piece meet no bank twice
#define PIECE_BYTES (LINES * PITCH * 4 > 3 * LINES * 64 ? LINES * PITCH * 4 : 3 * LINES * 64)
#define WARPS 8

struct Operand {
    const float* from; char* to;
    int lines, k;
    long long line_stride, k_stride;
    int along_k;  // k lies side by side
    long long step, apart;  // from member to member, in elements, and in bytes of its planes

    __device__ __forceinline__ void go_to(int member) {
        from += member * step;
        if (to) to += member * apart;
        if (member && !step) lines = 0;  // the first has it
    }
};

// Which of eight numbers are the pair `i`: neighbours, or with INTERLEAVED (read_once.cu) four apart.
#ifdef INTERLEAVED
#define LOW(i) (i)
#define HIGH(i) ((i) + 4)
#else
#define LOW(i) (2 * (i))
#define HIGH(i) (2 * (i) + 1)
#endif

// The next part of eight numbers, 16 bytes; what is left of them stays in x.
static __device__ __forceinline__ uint4 take_part(float (&x)[8]) {
    unsigned part[4];
    #pragma unroll
    for (int i = 0; i < 4; ++i) {
        part[i] = pair_of(x[LOW(i)], x[HIGH(i)]);
        x[LOW(i)] -= __uint_as_float(part[i] << 16);
        x[HIGH(i)] -= __uint_as_float(part[i] & 0xffff0000u);
    }
    return make_uint4(part[0], part[1], part[2], part[3]);
}

// Where piece `i` (8 of k) of a line lies within its 64 bytes.
static __device__ __forceinline__ int swizzled(int line, int i) { return (i ^ line / 2 % 4) * 16; }

static __device__ __forceinline__ unsigned magnitude(float x) { return __float_as_uint(x) & 0x7fffffffu; }

// 32 lines from `line` on, 32 k from `k` on. `of_lines`: place for the largest magnitude of each line, or null.
static __device__ __forceinline__ void split_piece(
    const Operand& here, int line, int k, char* shared, unsigned& largest, unsigned* of_lines)
{
    int lane = threadIdx.x % 32, padded = (here.lines + LINES - 1) / LINES * LINES;
    char* to = here.to + ((long long)k / DEPTH * 3 * padded + line) * 64;
    long long plane = (long long)padded * 64;
    float x[32];
    const float* from = here.from + line * here.line_stride + k * here.k_stride;
    long long step = here.along_k ? here.line_stride : here.k_stride;
    int inside = here.along_k ? here.lines - line : here.k - k;  // steps,
    bool mine = here.along_k ? k + lane < here.k : line + lane < here.lines;  // and this lane
    from += lane * (here.along_k ? here.k_stride : here.line_stride);
    #pragma unroll
    for (int i = 0; i < 32; ++i) x[i] = mine && i < inside ? __ldg(from + i * step) : 0.0f;
    #pragma unroll
    for (int i = 0; i < 32; ++i) largest = max(largest, magnitude(x[i]));
    if (of_lines) {
        unsigned own = 0;
        #pragma unroll
        for (int i = 0; i < 32; ++i) {
            unsigned of_line = here.along_k ? __reduce_max_sync(~0u, magnitude(x[i])) : magnitude(x[i]);
            if (!here.along_k || i == lane) own = max(own, of_line);
        }
        of_lines[(long long)k / DEPTH * padded + line + lane] = own;
    }
    if (!here.to) return;
    if (here.along_k) {
        float* transposed = reinterpret_cast<float*>(shared);
        #pragma unroll
        for (int i = 0; i < 32; ++i) transposed[i * PITCH + lane] = x[i];
        __syncwarp();
        #pragma unroll
        for (int i = 0; i < 4; ++i) {  // eight lines, four pieces each
            int row = i * 8 + lane / 4;
            const float4* at = reinterpret_cast<const float4*>(transposed + row * PITCH + lane % 4 * 8);
            float4 low = at[0], high = at[1];
            float eight[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
            #pragma unroll
            for (int p = 0; p < 3; ++p)
                *reinterpret_cast<uint4*>(to + p * plane + row * 64 + swizzled(row, lane % 4)) = take_part(eight);
        }
    } else {
        #pragma unroll
        for (int i = 0; i < 4; ++i) {
            float eight[8];
            #pragma unroll
            for (int j = 0; j < 8; ++j) eight[j] = x[i * 8 + j];
            #pragma unroll
            for (int p = 0; p < 3; ++p)
                *reinterpret_cast<uint4*>(shared + p * LINES * 64 + lane * 64 + swizzled(lane, i)) = take_part(eight);
        }
        __syncwarp();
        #pragma unroll
        for (int p = 0; p < 3; ++p)
            #pragma unroll
            for (int i = 0; i < 4; ++i)
                *reinterpret_cast<uint4*>(to + p * plane + i * 512 + lane * 16) =
                    *reinterpret_cast<const uint4*>(shared + p * LINES * 64 + i * 512 + lane * 16);
    }
    __syncwarp();
}

// Every `step`-th piece from `first` on: neighbours in memory are neighbours in time.
static __device__ __forceinline__ unsigned split_operand(
    const Operand& here, int first, int step, char* shared, unsigned* of_lines)
{
    int blocks_k = (here.k + DEPTH - 1) / DEPTH, blocks = (here.lines + LINES - 1) / LINES;
    unsigned largest = 0;
    for (int piece = first; piece < blocks_k * blocks; piece += step) {
        int line = here.along_k ? piece / blocks_k : piece % blocks, k = here.along_k ? piece % blocks_k : piece / blocks;
        split_piece(here, line * LINES, k * DEPTH, shared, largest, of_lines);
    }
    return __reduce_max_sync(~0u, largest);
}

extern "C" __global__ void __launch_bounds__(32 * WARPS, 4) split(Operand M, Operand N, unsigned* largest
#if BY_LINES
    , unsigned* of_lines, long long of_lines_apart
#endif
    )
{
    wait_on_dependent_grids();
    launch_dependent_grids();
#if BY_LINES
    of_lines += blockIdx.y * of_lines_apart;
#else
    unsigned* of_lines = nullptr;
#endif
    M.go_to(blockIdx.y);
    N.go_to(blockIdx.y);
    largest += blockIdx.y * 2ll * gridDim.x;
    __shared__ __align__(16) char pieces[WARPS][PIECE_BYTES];
    __shared__ unsigned met[2][WARPS];
    int warp = threadIdx.x / 32, first = blockIdx.x * WARPS + warp, step = gridDim.x * WARPS;
    unsigned largest_m = split_operand(M, first, step, pieces[warp], of_lines);
    // who had one piece of M less begins with N
    int taken = (int)((long long)((M.k + DEPTH - 1) / DEPTH) * ((M.lines + LINES - 1) / LINES) % step);
    unsigned largest_n = split_operand(N, (first - taken + step) % step, step, pieces[warp], nullptr);
    if (threadIdx.x % 32 == 0) {
        met[0][warp] = largest_m;
        met[1][warp] = largest_n;
    }
    __syncthreads();
    if (threadIdx.x < 2) {
        unsigned most = 0;
        for (int w = 0; w < WARPS; ++w) most = max(most, met[threadIdx.x][w]);
        largest[threadIdx.x * gridDim.x + blockIdx.x] = most;
    }
}
