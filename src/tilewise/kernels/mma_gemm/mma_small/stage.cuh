// A stage in shared memory: TM lines of M, then TN lines of N, each KC of k side by side, copied from any strides.

#define WARPS (WARPS_M * WARPS_N * WARPS_K)
#define THREADS (WARPS * 32)
#define GROUP (32 * WARPS_M * WARPS_N)  // threads that share a step of k
#define PITCH (KC + 4)  // elements; KC is whole 16s
#define STAGE ((TM + TN) * PITCH)
#define CELLS (TM * TN)
#define ACROSS 0  // how an operand is copied: its lines' elements of one k lie side by side,
#define ALONG 1   // or those of one line,
#define VECTORS 2 // 16 bytes at a time

extern __shared__ __align__(128) unsigned char memory[];

// One operand of the tile, LINES lines of it: what a thread copies in a phase, and where to. Copies are as far apart as
// the ones before, so that few registers hold where all of them go.
template <int LINES> struct Operand {
    static constexpr int EIGHTS = LINES / 8, TURNS = EIGHTS > WARPS ? EIGHTS / WARPS : 1, APART = LINES / TURNS;

    const Element* from;          // this thread's first copy of the phase
    long long step, turn, phase;  // elements from one copy to the next, from turn to turn, from phase to phase
    int line, at;                 // of that copy: its line in the tile, its k in the phase
    int line_step, at_step, count;
    int inside, wide;             // lines that the operand has from the tile's first on; whether copies are 16 bytes

    __device__ __forceinline__ Operand(
        const Element* first, long long line_stride, long long k_stride, int lines, int how)
        : turn(APART * line_stride), phase(KC * k_stride), inside(lines), wide(how == VECTORS)
    {
        int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
        if (how == ACROSS) {  // a warp takes 8 lines at 4 of k
            const int side = EIGHTS < WARPS ? EIGHTS : WARPS;
            line = warp % side * 8 + lane % 8;
            at = warp / side * 4 + lane / 8;
            line_step = 0;
            at_step = WARPS / side * 4;
            count = KC / at_step;
        } else {  // neighbours along k
            int each = wide ? 16 / SIZE : 1, pieces = KC / each;
            line = threadIdx.x / pieces;
            at = threadIdx.x % pieces * each;
            line_step = THREADS / pieces;
            at_step = 0;
            count = APART / line_step;
        }
        from = first + line * line_stride + at * k_stride;
        step = line_step * line_stride + at_step * k_stride;
    }

    // The copies of one phase into `tile`, `left` of k being left.
    __device__ __forceinline__ void fetch(Element* tile, int left) {
        if (wide) fetch_by<16 / SIZE>(tile, left);
        else fetch_by<1>(tile, left);
        from += phase;
    }

    template <int EACH> __device__ __forceinline__ void fetch_by(Element* tile, int left) const {
        #pragma unroll
        for (int group = 0; group < TURNS; ++group) {
            const Element* there = from + group * turn;
            Element* to = tile + (line + group * APART) * PITCH + at;
            int more = inside - line - group * APART, deep = left - at;
            #pragma unroll 4
            for (int i = 0; i < count; ++i, there += step, to += line_step * PITCH + at_step, more -= line_step, deep -= at_step) {
                int valid = more > 0 ? max(0, min(EACH, deep)) * SIZE : 0;
                copy<EACH * SIZE, true>((unsigned)__cvta_generic_to_shared(to), valid ? there : from, valid);
            }
        }
    }
};

