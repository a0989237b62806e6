// realign_with_edges: lines of two matrices move onto 128-byte boundaries, and are multiplied with an edge on the way.
//
// Where P is just larger than its whole tiles (4097), its last row is M's last row times all of N, and its last column all
// of M times N's last column. Who moves an operand has all of it in registers once: the sums cost a few instructions there,
// and reading it all again later would cost as much as the move.
//
// Layout: a block takes LINES_EACH lines for each of its warps, a warp every eighth of them, and a segment of each. All of
//   it is asked of the copy engine at once, from the 16-byte boundaries before and after; each lane then takes 16 bytes and
//   the 16 after them from shared memory, and shifts the pair by the line's offset. The offset is the same for the whole
//   warp, so the switch over it is no branch. With k across the lines (ALONG_K is 0) each lane keeps the sums of its
//   columns, and the block adds up its warps'. With k along the lines each lane keeps its elements of the edge, and a warp
//   adds up its lanes' products. Either way a block's sums are of a part of k: planes of them are written, and
//   thin_edges.cuh adds those up. No launch needs both.
// Edges: what sticks out of the matrix as a whole is read element by element; columns past a line's end count for nothing.
// Barrier: arrived[l] completes when line l has; the block meets when its warps' sums, or the edge, are in shared memory.
// An operand that lies well need not move: its edge is copied side by side first, for everybody reads it (`Edge`).
// blockIdx.z says what a block does: copy edges, if there are any to copy, then one matrix, then the other.

#define WARPS 8
#define STAGE_BYTES (2 * SEGMENT + 16)

struct Edge { const Element* from; Element* to; int k; int count; long long step; long long next; };  // from k to k
// `edge` has its elements `step` apart; planes are `pitch` apart. Without them nothing is added up.
struct Sums { const Element* edge; long long step; float* planes; long long pitch; };

static __device__ __forceinline__ void copy_edge(Edge edge) {
    long long first = ((long long)blockIdx.y * gridDim.x + blockIdx.x) * 256 + threadIdx.x;
    for (long long i = first; i < (long long)edge.k * edge.count; i += (long long)gridDim.x * gridDim.y * 256)
        edge.to[i] = edge.from[i % edge.k * edge.step + i / edge.k * edge.next];
}

// The warp's i-th line.
static __device__ __forceinline__ int line_of(int i) { return (blockIdx.x * LINES_EACH + i) * WARPS + threadIdx.x / 32; }

// Where the warp's i-th line lies in shared memory.
static __device__ __forceinline__ char* stage_of(char* stages, int i) {
    return stages + (threadIdx.x / 32 * LINES_EACH + i) * STAGE_BYTES;
}

// How many lines the warp has.
static __device__ __forceinline__ int count_of(const Lines& lines) {
    return min(LINES_EACH, (lines.lines - line_of(0) + WARPS - 1) / WARPS);
}

static __device__ __forceinline__ void ask_for_lines(const Lines& lines, int start, char* stages, Barrier* arrived) {
    int lane = threadIdx.x % 32, count = count_of(lines);
    arrived += threadIdx.x / 32 * LINES_EACH;
    if (lane < LINES_EACH) barrier_init(&arrived[lane], 1);
    barrier_init_done();
    __syncwarp();
    const Element* last = lines.from + (lines.lines - 1) * lines.lead + lines.length;
    for (int i = 0; i < count; ++i) {
        const Element* source = lines.from + line_of(i) * lines.lead + start;
        int before = elements_after_boundary(source), words = (before + min(SEGMENT, lines.length - start) + 7) / 8;
        const Element* word = source - before;
        uint4* to = reinterpret_cast<uint4*>(stage_of(stages, i));
        if (word >= lines.from && word + words * 8 <= last) {
            if (lane == 0) {
                barrier_expect(&arrived[i], words * 16);
                copy_bytes(to, word, words * 16, &arrived[i]);
            }
        } else {  // the matrix begins or ends within a word
            for (int w = lane; w < words; w += 32) to[w] = load_word(word + w * 8, lines.from, last);
            __syncwarp();
            if (lane == 0) barrier_arrive(&arrived[i]);
        }
    }
}

template <int shift>
static __device__ __forceinline__ void shift_words(uint4 (&word)[WORDS], const uint4* at) {
    #pragma unroll
    for (int i = 0; i < WORDS; ++i) {
        word[i] = at[i * 32];
        if (shift) word[i] = shifted<shift>(word[i], at[i * 32 + 1]);
    }
}

// The warp's lines, when they have come. `see(i, w, word)` is shown the 16 bytes of its i-th from column
// start + w * 256 + lane * 8 on, `seen(i)` is told when it has moved.
template <class See, class Seen> static __device__ __forceinline__ void move_lines(
    const Lines& lines, int start, char* stages, Barrier* arrived, See see, Seen seen)
{
    int lane = threadIdx.x % 32, left = lines.length - start - lane * 8, first = line_of(0);
    int shift = elements_after_boundary(lines.from + first * lines.lead);  // lines eight apart lie alike
    int count = count_of(lines);
    uint4* target = reinterpret_cast<uint4*>(lines.to + first * lines.lead_to + start) + lane;
    unsigned target_step = (unsigned)(lines.lead_to / 8 * WARPS);
    #pragma unroll 1
    for (int i = 0; i < count; ++i) {
        const uint4* at = reinterpret_cast<const uint4*>(stage_of(stages, i)) + lane;
        uint4 word[WORDS];
        barrier_wait(&arrived[threadIdx.x / 32 * LINES_EACH + i], 0);
        switch (shift) {
            case 0: shift_words<0>(word, at); break;
            case 1: shift_words<1>(word, at); break;
            case 2: shift_words<2>(word, at); break;
            case 3: shift_words<3>(word, at); break;
            case 4: shift_words<4>(word, at); break;
            case 5: shift_words<5>(word, at); break;
            case 6: shift_words<6>(word, at); break;
            default: shift_words<7>(word, at); break;
        }
        #pragma unroll
        for (int w = 0; w < WORDS; ++w)
            if (w * 256 < left) {
                target[w * 32] = word[w];
                see(i, w, word[w]);
            }
        seen(i);
        target += target_step;
    }
}

static __device__ __forceinline__ void move_across_k(
    const Lines& lines, int start, const Sums& to, char* stages, Barrier* arrived, float* edge)
{
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if (lane < LINES_EACH)
        edge[warp * LINES_EACH + lane] = line_of(lane) < lines.lines ? widen(to.edge[line_of(lane) * to.step]) : 0.0f;
    __syncwarp();
    float sums[WORDS][8] = {};
    move_lines(lines, start, stages, arrived, [&](int i, int w, uint4 word) {
        float scale = edge[warp * LINES_EACH + i];
        #pragma unroll
        for (int j = 0; j < 8; ++j) sums[w][j] += scale * widen(element_of(word, j));
    }, [](int) {});
    float (*shares)[SEGMENT] = reinterpret_cast<float (*)[SEGMENT]>(stages);
    __syncthreads();
    #pragma unroll
    for (int i = 0; i < WORDS; ++i)
        #pragma unroll
        for (int j = 0; j < 8; j += 4)
            *reinterpret_cast<float4*>(&shares[warp][i * 256 + lane * 8 + j]) =
                make_float4(sums[i][j], sums[i][j + 1], sums[i][j + 2], sums[i][j + 3]);
    __syncthreads();
    int column = threadIdx.x * 4;
    if (column >= SEGMENT || start + column >= to.pitch) return;
    float4 all = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    #pragma unroll
    for (int i = 0; i < WARPS; ++i) {
        float4 one = *reinterpret_cast<const float4*>(&shares[i][column]);
        all = make_float4(all.x + one.x, all.y + one.y, all.z + one.z, all.w + one.w);
    }
    *reinterpret_cast<float4*>(to.planes + blockIdx.x * to.pitch + start + column) = all;
}

static __device__ __forceinline__ void move_along_k(
    const Lines& lines, int start, const Sums& to, char* stages, Barrier* arrived, float* edge)
{
    int lane = threadIdx.x % 32;
    for (int i = threadIdx.x; i < SEGMENT; i += 32 * WARPS)
        edge[i] = start + i < lines.length ? widen(to.edge[(start + i) * to.step]) : 0.0f;
    __syncthreads();
    float scales[WORDS][8];
    #pragma unroll
    for (int i = 0; i < WORDS; ++i)
        #pragma unroll
        for (int j = 0; j < 8; ++j) scales[i][j] = edge[i * 256 + lane * 8 + j];
    float sum = 0.0f;
    move_lines(lines, start, stages, arrived, [&](int, int w, uint4 word) {
        int left = lines.length - start - w * 256 - lane * 8;
        #pragma unroll
        for (int j = 0; j < 8; ++j) sum += j < left ? scales[w][j] * widen(element_of(word, j)) : 0.0f;
    }, [&](int i) {
        #pragma unroll
        for (int step = 16; step; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
        if (lane == 0) to.planes[blockIdx.y * to.pitch + line_of(i)] = sum;
        sum = 0.0f;
    });
}

extern "C" __global__ void __launch_bounds__(256, 3) realign_with_edges(
    Lines one, Lines other, Sums of_one, Sums of_other, Edge rows, Edge cols)
{
    wait_on_dependent_grids();
    launch_dependent_grids();
    extern __shared__ __align__(16) unsigned char memory[];
    int before = rows.count + cols.count > 0;
    if (blockIdx.z < before) {
        copy_edge(rows);
        copy_edge(cols);
        return;
    }
    Lines here = blockIdx.z == before ? one : other;
    Sums to = blockIdx.z == before ? of_one : of_other;
    int start = blockIdx.y * SEGMENT;
    if (start >= here.length || blockIdx.x * (LINES_EACH * WARPS) >= here.lines) return;
    char* stages = reinterpret_cast<char*>(memory);
    Barrier* arrived = reinterpret_cast<Barrier*>(stages + WARPS * LINES_EACH * STAGE_BYTES);
    float* edge = reinterpret_cast<float*>(arrived + WARPS * LINES_EACH);
    ask_for_lines(here, start, stages, arrived);
    if (!to.planes)
        move_lines(here, start, stages, arrived, [](int, int, uint4) {}, [](int) {});
    else if (ALONG_K)
        move_along_k(here, start, to, stages, arrived, edge);
    else
        move_across_k(here, start, to, stages, arrived, edge);
}
