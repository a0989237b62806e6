// thin: P has few rows or few columns, k is long: a lane makes all cells of LINES lines of P, in registers. Lines of the
// long operand are read once; a step of k of the short one is read by all lanes at a time. By columns when P has few of
// them, by rows when it has few of those: `line` is along P's long side, `cell` along its short one.
//
// Layout: PANEL of k of the short operand lie in shared memory, CELLS neighbours for each k, twice: one panel is used
//   while the next one is copied. Where the long operand's k lie side by side, a warp brings DEEP of k of its lines
//   through shared memory of its own, a line for a lane; else each lane loads its own.
// Edges: what lies outside of either operand is 0; P is stored through a guard.
// Barrier: two a panel, none between warps within it. The blocks of a cluster share k, and meet when all have their sums:
//   each then adds up a share of the cells, in order.

#define DEEP 16   // k of its lines that a lane holds, while the next ones are on their way
#define PANEL 128
#define SPAN (LINES * 32)  // lines of a warp
#define PITCH (DEEP + 1)

extern __shared__ __align__(128) unsigned char memory[];

struct __align__(16) Four { float of[4]; };

// The long operand: this warp's lines of it.
struct Long {
    const float* from;  // the first line's k = 0
    long long line, step;
    int lines, end;     // lines that there are from the first on; where this block's k end

    // DEEP of k from k0 on, as they are loaded: neighbouring lanes load what lies side by side.
    template <bool ALONG> __device__ __forceinline__ void load(float (&next)[LINES * DEEP], int k0) const {
        int lane = threadIdx.x % 32;
        #pragma unroll
        for (int i = 0; i < LINES * DEEP; ++i) {
            int which = ALONG ? lane / 16 + 2 * i : i / DEEP * 32 + lane, k = k0 + (ALONG ? lane % 16 : i % DEEP);
            next[i] = which < lines && k < end ? from[which * line + k * step] : 0.0f;
        }
    }
};

struct Sums {
    float of[LINES][CELLS];

    __device__ __forceinline__ void clear() {
        #pragma unroll
        for (int i = 0; i < LINES * CELLS; ++i) of[i / CELLS][i % CELLS] = 0.0f;
    }

    __device__ __forceinline__ void step(const float (&x)[LINES], const float* cells) {
        #pragma unroll
        for (int j = 0; j < CELLS; j += 4) {
            Four y = *reinterpret_cast<const Four*>(cells + j);
            #pragma unroll
            for (int e = 0; e < 4; ++e)
                #pragma unroll
                for (int l = 0; l < LINES; ++l) of[l][j + e] = fmaf(x[l], y.of[e], of[l][j + e]);
        }
    }
};

// A panel of the short operand on its way into shared memory.
static __device__ __forceinline__ void fetch_panel(
    float* panel, const float* B, long long cell_stride, long long k_stride, int cells, int begin, int end)
{
    bool along = k_stride < cell_stride;
    for (int i = threadIdx.x; i < PANEL * CELLS; i += blockDim.x) {
        int k = along ? i % PANEL : i / CELLS, cell = along ? i / PANEL : i % CELLS;
        bool inside = cell < cells && begin + k < end;
        const float* from = inside ? B + cell * cell_stride + (begin + k) * k_stride : B;
        copy<4, true>((unsigned)__cvta_generic_to_shared(panel + k * CELLS + cell), from, inside ? 4 : 0);
    }
    close_group();
}

// The sums of this block's k, `begin` to the end that `given` knows.
template <bool ALONG>
static __device__ __forceinline__ void multiply_all(
    Sums& sums, const Long& given, const float* B, long long cell_stride, long long k_stride, int cells, int begin)
{
    float* panels = reinterpret_cast<float*>(memory);
    float* own = panels + 2 * PANEL * CELLS + threadIdx.x / 32 * SPAN * PITCH;
    int lane = threadIdx.x % 32, end = given.end;
    float next[LINES * DEEP];
    fetch_panel(panels, B, cell_stride, k_stride, cells, begin, end);
    given.template load<ALONG>(next, begin);
    for (int first = begin, turn = 0; first < end; first += PANEL, turn ^= 1) {
        wait_groups<0>();
        __syncthreads();  // this panel is there for all, and the one before is used up
        if (first + PANEL < end)
            fetch_panel(panels + (turn ^ 1) * PANEL * CELLS, B, cell_stride, k_stride, cells, first + PANEL, end);
        const float* panel = panels + turn * PANEL * CELLS;
        int stop = min(PANEL, end - first);
        #pragma unroll 1
        for (int k0 = 0; k0 < stop; k0 += DEEP, panel += DEEP * CELLS) {
            float held[LINES * DEEP];
            #pragma unroll
            for (int i = 0; i < LINES * DEEP; ++i)
                if (ALONG) own[(lane / 16 + 2 * i) * PITCH + lane % 16] = next[i];
                else held[i] = next[i];
            if (ALONG) __syncwarp();
            if (first + k0 + DEEP < end) given.template load<ALONG>(next, first + k0 + DEEP);
            #pragma unroll (ALONG ? 4 : DEEP)
            for (int k = 0; k < DEEP; ++k) {
                float x[LINES];
                #pragma unroll
                for (int l = 0; l < LINES; ++l) x[l] = ALONG ? own[(l * 32 + lane) * PITCH + k] : held[l * DEEP + k];
                sums.step(x, panel + k * CELLS);
            }
            if (ALONG) __syncwarp();  // before they are written over
        }
    }
}

extern "C" __global__ void __launch_bounds__(MOST_THREADS, RESIDENT) thin(
    const float* __restrict__ A, const float* __restrict__ B, float* P, int lines, int k, int cells, long long a_line,
    long long a_k, long long b_cell, long long b_k, long long p_line, long long p_cell, int piece, long long step_A,
    long long step_B, long long step_P)
{
    wait_for_the_one_before();
    let_the_next_start();
    int blocks = cluster_blocks(), rank = cluster_rank(), span = blockDim.x * LINES, top = blockIdx.x / blocks * span;
    int begin = min(rank * piece, k), end = min(begin + piece, k), first = top + threadIdx.x / 32 * SPAN;
    Long given = {A + blockIdx.y * step_A + first * a_line, a_line, a_k, lines - first, end};
    B += blockIdx.y * step_B;

    Sums sums;
    sums.clear();
    if (a_k < a_line) multiply_all<true>(sums, given, B, b_cell, b_k, cells, begin);
    else multiply_all<false>(sums, given, B, b_cell, b_k, cells, begin);

    // The block's sums, cell by cell, take the place of the panels.
    __syncthreads();
    float* made = reinterpret_cast<float*>(memory);
    int pitch = span + 1, mine = threadIdx.x / 32 * SPAN + threadIdx.x % 32;
    #pragma unroll
    for (int l = 0; l < LINES; ++l)
        #pragma unroll
        for (int j = 0; j < CELLS; ++j) made[j * pitch + mine + l * 32] = sums.of[l][j];
    if (blocks > 1) cluster_meet();
    else __syncthreads();
    int height = min(span, lines - top), all = height * cells;
    int from = (int)((long long)all * rank / blocks), to = (int)((long long)all * (rank + 1) / blocks);
    P += blockIdx.y * step_P + top * p_line;
    for (int i = from + threadIdx.x; i < to; i += blockDim.x) {
        int line = p_cell < p_line ? i / cells : i % height, cell = p_cell < p_line ? i % cells : i / height;
        const float* sum = made + cell * pitch + line;
        float value = *in_block(sum, 0);
        for (int other = 1; other < blocks; ++other) value += *in_block(sum, other);
        P[line * p_line + cell * p_cell] = value;
    }
    if (blocks > 1) cluster_meet();  // nobody leaves while others read its sums
}
