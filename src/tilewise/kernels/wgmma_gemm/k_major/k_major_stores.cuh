// k_major_stores: how sums leave the registers of `k_major` for P, whatever P's stride.
//
// Boxes: where rows of P start and end on 16 bytes the copy engine takes boxes of 64 rows, 128 bytes each (BOXED), while the
//   next tile is multiplied; where a tile is not whole boxes wide, the last one repeats some of the one before.
// Rows: else each warp turns its rows in a staging of its own, eight rows and 128 words of each at a time, and writes them in
//   pieces that start and end on the 128-byte lines of memory: what lies across two lines costs more than twice. A word is
//   one sum, or with PACK two elements of P.
// Barrier: a warpgroup meets before and after it fills boxes; a warp before and after it fills its staging.

#define ROW_BYTES 128  // of a box, as of k in a stage
#define CONSUMERS (BLOCK_M / 64)
#define SUMS (BLOCK_N / 2)  // of a thread
#define BOX_COLS (ROW_BYTES / (int)sizeof(Result))
#define BOX_BYTES (64 * ROW_BYTES)
#define PARTS ((BLOCK_N + BOX_COLS - 1) / BOX_COLS)
#define HELD 128  // words of a row that a warp stages
#define STAGING_BYTES (BOXED ? CONSUMERS * BOXES * BOX_BYTES : CONSUMERS * 4 * 8 * HELD * 4)

struct __align__(8) Pair { Sum first, second; };

// Two elements of P of 2 bytes each, as a word.
static __device__ __forceinline__ unsigned narrow_pair(Sum x, Sum y) {
    return (unsigned)narrow(x) & 0xffffu | (unsigned)narrow(y) << 16;
}

// Where a box of P begins in its tile.
static __device__ __forceinline__ constexpr int box_start(int part) {
    return part * BOX_COLS < BLOCK_N - BOX_COLS ? part * BOX_COLS : BLOCK_N - BOX_COLS;
}

// Sums into boxes, swizzled as the copy engine reads them.
static __device__ __forceinline__ void store_boxes(
    const Sum (&sums)[SUMS], char* boxes, const TensorMap* map_p, int group, int top, int left)
{
    bool leader = threadIdx.x % 128 == 0;
    int lane = threadIdx.x % 32, row = threadIdx.x / 32 % 4 * 16 + lane / 4;
    #pragma unroll
    for (int first = 0; first < PARTS; first += BOXES) {
        if (leader) store_wait_read();
        barrier_sync(1 + group, 128);
        #pragma unroll
        for (int part = first; part < min(first + BOXES, PARTS); ++part)
            #pragma unroll
            for (int j = 0; j < BOX_COLS / 8; ++j)
                #pragma unroll
                for (int below = 0; below < 2; ++below) {
                    char* line = boxes + (part - first) * BOX_BYTES + (row + below * 8) * ROW_BYTES;
                    int i = box_start(part) / 2 + 4 * j + 2 * below;
                    if (sizeof(Result) == 4) {
                        int piece = j * 2 + lane % 4 / 2;
                        *reinterpret_cast<Pair*>(line + (piece ^ row % 8) * 16 + lane % 2 * 8) = Pair{sums[i], sums[i + 1]};
                    } else
                        *reinterpret_cast<unsigned*>(line + (j ^ row % 8) * 16 + lane % 4 * 4) =
                            narrow_pair(sums[i], sums[i + 1]);
                }
        fence_async_shared();
        barrier_sync(1 + group, 128);
        if (leader) {
            for (int part = first; part < min(first + BOXES, PARTS); ++part)
                store_box(map_p, boxes + (part - first) * BOX_BYTES, left + box_start(part), top);
            store_commit();
        }
    }
}

// Where a word of a staged row lies: pairs of sums meet no bank twice, nor do words side by side.
static __device__ __forceinline__ int staged_at(int row, int word) { return row * HELD + (word ^ row % 4 * 8); }

// A warp's 16 rows of a tile. `staging` is its own.
static __device__ __forceinline__ void store_rows(
    const Sum (&sums)[SUMS], Sum* staging, Result* P, long long ldp, Size size, int top, int left, bool onto)
{
    int lane = threadIdx.x % 32;
    #pragma unroll
    for (int below = 0; below < 2; ++below)
        #pragma unroll
        for (int i = 0; i < SUMS; i += HELD / 2 * PACK) {  // the first of HELD words
            int first = top + threadIdx.x / 32 % 4 * 16 + below * 8, column = left + 2 * i;
            if (column >= size.n) break;
            #pragma unroll
            for (int j = i; j < min(i + HELD / 2 * PACK, SUMS); j += 4) {
                Sum x = sums[j + 2 * below], y = sums[j + 2 * below + 1];
                Sum* at = staging + staged_at(lane / 4, (2 * (j - i) + lane % 4 * 2) / PACK);
                if (PACK == 1)
                    *reinterpret_cast<Pair*>(at) = Pair{x, y};
                else
                    *reinterpret_cast<unsigned*>(at) = narrow_pair(x, y);
            }
            __syncwarp();
            int width = min(min(HELD * PACK, BLOCK_N - 2 * i), size.n - column);
            Result* line = P + first * ldp + column;
            #pragma unroll 2
            for (int row = 0; row < min(8, size.m - first); ++row, line += ldp) {
                int misalignment = (int)(reinterpret_cast<unsigned long long>(line) / (PACK * sizeof(Result)) % 32);
                #pragma unroll
                for (int piece = 0; piece <= HELD / 32; ++piece) {
                    int word = piece * 32 - misalignment + lane, at = word * PACK;
                    if (word < 0 || at >= width) continue;
                    Sum sum = staging[staged_at(row, word)];
                    if (PACK == 1)
                        line[at] = narrow(onto ? widen(line[at]) + sum : sum);
                    else {
                        unsigned both = *reinterpret_cast<const unsigned*>(&sum);
                        if (at + 1 < width)
                            *reinterpret_cast<unsigned*>(line + at) = both;
                        else
                            line[at] = (Result)both;
                    }
                }
            }
            __syncwarp();
        }
}

// A warp's columns of a tile as rows of P: eight lanes have eight neighbours, a sector of 4-byte elements.
static __device__ __forceinline__ void store_columns(
    const Sum (&sums)[SUMS], Result* P, long long ldp, int m, int top, int left, bool onto)
{
    int lane = threadIdx.x % 32, row = top + threadIdx.x / 32 % 4 * 16 + lane / 4, column = left + lane % 4 * 2;
    #pragma unroll
    for (int i = 0; i < SUMS; ++i) {
        int r = row + i / 2 % 2 * 8, c = column + i / 4 * 8 + i % 2;
        if (r >= m || c >= m) continue;
        Result* to = P + c * ldp + r;
        *to = narrow(onto ? widen(*to) + sums[i] : sums[i]);
    }
}
