// deinterleave: sorts the k of M's rows by their remainder modulo 8, 4 or 2, into 128-byte aligned rows: for N by alignment classes
// (alignment_classes.cuh).
//
// Layout: source row r starts at from + r * lead, at any even address. Of 8 classes, its element 8 i + c becomes element
//   c * run + i of target row r; zeros stand behind those there are. A warp takes 2,048 elements of a row: its lanes load aligned 16-byte words and leave
//   them in shared memory, one word free behind every eight, so that each lane then finds 64 elements of its own in other banks;
//   it shifts them together and turns them, 8 x 8, in registers. blockIdx.z is the member.
// Edges: words that stick out of the matrix as a whole are read element by element.
// Barrier: none; a warp waits for its own lanes.

#define WARPS 8
#define ROW_WORDS 256             // of a warp's part of a row, and one more where it is shifted
#define HELD (257 + 257 / 8 + 1)  // words of shared memory for that

struct Rows { const Element* from; Element* to; int rows, k, run, classes; long long lead, lead_to, step, step_to; };

static __device__ __forceinline__ int held_at(int word) { return word + word / 8; }

// Element i * CLASSES + c of a lane's 64 is element i of class c.
template <int CLASSES>
static __device__ __forceinline__ void put_classes(const unsigned (&found)[8][4], Element* target, int start, int run) {
    const int words = 8 / CLASSES;  // of 16 bytes, in each class
    int at = start / CLASSES + threadIdx.x % 32 * (64 / CLASSES);
    if (at >= run) return;
    #pragma unroll
    for (int c = 0; c < CLASSES; ++c)
        #pragma unroll
        for (int w = 0; w < words; ++w) {
            unsigned made[4];
            #pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int one = (w * 8 + 2 * i) * CLASSES + c, next = one + CLASSES;
                made[i] = __byte_perm(found[one / 8][one % 8 / 2], found[next / 8][next % 8 / 2], c % 2 ? 0x7632 : 0x5410);
            }
            *reinterpret_cast<uint4*>(target + (long long)c * run + at + w * 8) = make_uint4(made[0], made[1], made[2], made[3]);
        }
}

extern "C" __global__ void __launch_bounds__(32 * WARPS) deinterleave(Rows rows)
{
    __shared__ uint4 held[WARPS][HELD];
    wait_on_dependent_grids();
    launch_dependent_grids();
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, row = blockIdx.x * WARPS + warp, start = blockIdx.y * ROW_WORDS * 8;
    if (row >= rows.rows) return;
    const Element* first = rows.from + blockIdx.z * rows.step;
    const Element* source = first + row * rows.lead + start;
    const Element* last = first + (rows.rows - 1) * rows.lead + rows.k;
    int shift = elements_after_boundary(source), left = rows.k - start;  // elements of the row
    const Element* words = source - shift;
    uint4* mine = held[warp];
    uint4 word[ROW_WORDS / 32];
    #pragma unroll
    for (int i = 0; i < ROW_WORDS / 32; ++i) {
        int at = i * 32 + lane;
        word[i] = at * 8 < left + shift ? load_word(words + at * 8, first, last) : make_uint4(0, 0, 0, 0);
    }
    if (lane == 0 && shift && ROW_WORDS * 8 < left + shift) mine[held_at(ROW_WORDS)] = load_word(words + ROW_WORDS * 8, first, last);
    #pragma unroll
    for (int i = 0; i < ROW_WORDS / 32; ++i) mine[held_at(i * 32 + lane)] = word[i];
    __syncwarp();
    uint4 low = mine[held_at(lane * 8)];
    unsigned found[8][4];  // eight times eight elements side by side
    #pragma unroll
    for (int i = 0; i < 8; ++i) {
        uint4 high = mine[held_at(lane * 8 + i + 1)];
        uint4 made = shifted_by(low, high, shift);
        low = high;
        if (left < ROW_WORDS * 8) made = first_of(made, left - lane * 64 - i * 8);
        found[i][0] = made.x, found[i][1] = made.y, found[i][2] = made.z, found[i][3] = made.w;
    }
    Element* target = rows.to + row * (long long)rows.lead_to + blockIdx.z * rows.step_to;
    if (rows.classes == 8)
        put_classes<8>(found, target, start, rows.run);
    else if (rows.classes == 4)
        put_classes<4>(found, target, start, rows.run);
    else
        put_classes<2>(found, target, start, rows.run);
}
