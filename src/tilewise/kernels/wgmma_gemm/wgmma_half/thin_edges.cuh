// thin_edges: a few last rows and columns of P, made in the background.
//
// Where P is just larger than its whole tiles (4097), another row and column of tiles would make a whole new wave of work.
// Instead, three warps of every block that have nothing else to do multiply the last rows of M with all of N, and all of M
// with the last columns of N, on plain cores, while the tensor cores make the whole tiles.
//
// Layout: an operand is lines of elements side by side. With k along them a warp takes the dot products of DOTS lines;
//   lines eight apart lie equally far from a 16-byte boundary, so whole words can be loaded wherever lines start. With k
//   across them (such lines start on 16 bytes) a block takes 32 neighbours and its warps every third eight of k.
//   The other operand's last rows or columns have been copied side by side (realign_with_edges.cu), for everybody reads
//   them. An operand that was realigned has been multiplied with them on the way: only planes of sums are left to add.
// Edges: words that stick out of the operand are read element by element, and what is not of the line is never used.
// Barrier: the block's three warps meet (named barrier 15) to add up their shares, always in the same order.
// The warps call `between` every few microseconds, to store finished tiles in time.

struct Side {
    const Element* from; const Element* end; int lines; int length; long long lead; int along_k;  // one operand, whole
    const Element* edge; int edges;  // the other's last rows or columns, k elements each
    const float* planes; int count; long long pitch;  // sums of parts of k, where they have been made already
};
struct ThinEdges { Side of_cols, of_rows; };

#define EDGE_WARPS 3
#define EDGE_THREADS (32 * EDGE_WARPS)
#define DOTS 4
#define BATCH 6  // lines whose words are on their way together, as registers allow

// Position p of an edge goes to at[p * step], as long as p < limit; its column of P is column + p * column_step.
struct EdgeTarget { Element* at; long long step; int limit, column, column_step; };

static __device__ __forceinline__ void put_edge(const EdgeTarget& target, int p, float sum, const Epilogue& epilogue) {
    if (p >= target.limit) return;
    Element* to = target.at + p * target.step;
    float held = ACCUMULATE ? widen(*to) : 0.0f, bias = bias_of(epilogue, target.column + p * target.column_step, true);
    *to = (Element)narrow_pair(finish(sum, held, bias, epilogue), 0.0f);
}

template <class Between> static __device__ __forceinline__ void edge_dots(
    const Side& side, int e, const EdgeTarget& target, const Epilogue& epilogue, Between& between)
{
    int lane = threadIdx.x % 32, warp = blockIdx.x * EDGE_WARPS + threadIdx.x / 32 - 1;
    const Element* edge = side.edge + (long long)e * side.length;
    for (int group = warp; group < (side.lines + 8 * DOTS - 1) / (8 * DOTS) * 8; group += gridDim.x * EDGE_WARPS) {
        between();
        int first = group / 8 * (8 * DOTS) + group % 8;
        const Element* line = side.from + first * side.lead;
        float sums[DOTS] = {};
        for (int start = lane * 8 - elements_after_boundary(line); start < side.length; start += 256) {
            uint4 words[DOTS];
            float scales[8];
            const Element* at = line + start;
            if (start >= 0 && start + 8 <= side.length && first + (DOTS - 1) * 8 < side.lines) {
                #pragma unroll
                for (int i = 0; i < DOTS; ++i)
                    words[i] = __ldg(reinterpret_cast<const uint4*>(at + i * 8 * side.lead));
            } else {
                #pragma unroll
                for (int i = 0; i < DOTS; ++i)
                    words[i] = first + i * 8 < side.lines ? load_word(at + i * 8 * side.lead, side.from, side.end)
                                                          : make_uint4(0, 0, 0, 0);
            }
            #pragma unroll
            for (int j = 0; j < 8; ++j) {
                int k = start + j;
                scales[j] = k >= 0 && k < side.length ? widen(edge[k]) : 0.0f;
            }
            #pragma unroll
            for (int i = 0; i < 8 * DOTS; ++i) {
                bool inside = start + i % 8 >= 0 && start + i % 8 < side.length;  // else it may be anything
                sums[i / 8] += inside ? scales[i % 8] * widen(element_of(words[i / 8], i % 8)) : 0.0f;
            }
        }
        #pragma unroll
        for (int i = 0; i < DOTS; ++i) {
            #pragma unroll
            for (int step = 16; step; step /= 2) sums[i] += __shfl_xor_sync(~0u, sums[i], step);
            if (lane == 0) put_edge(target, first + i * 8, sums[i], epilogue);
        }
    }
}

template <class Between> static __device__ __forceinline__ void edge_sums(
    const Side& side, int e, float (*shares)[32], const EdgeTarget& target, const Epilogue& epilogue, Between& between)
{
    const int rows = 8 * EDGE_WARPS;  // that the block's warps take at a time
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32 - 1;
    const Element* edge = side.edge + (long long)e * side.lines;
    for (int chunk = blockIdx.x * 32; chunk < side.length; chunk += gridDim.x * 32) {
        float sums[8] = {};
        bool whole = chunk + 32 <= side.length;
        const Element* mine = side.from + chunk + lane % 4 * 8;
        for (int start = 0; start < side.lines; start += BATCH * rows) {
            between();
            int k = start + warp * 8 + lane / 4;
            uint4 words[BATCH];
            float scales[BATCH];
            if (whole && k + (BATCH - 1) * rows < side.lines) {
                #pragma unroll
                for (int i = 0; i < BATCH; ++i) {
                    words[i] = __ldg(reinterpret_cast<const uint4*>(mine + (k + i * rows) * side.lead));
                    scales[i] = widen(edge[k + i * rows]);
                }
            } else {
                #pragma unroll
                for (int i = 0; i < BATCH; ++i) {
                    bool inside = k + i * rows < side.lines;
                    words[i] = inside ? load_word(mine + (k + i * rows) * side.lead, side.from, side.end)
                                      : make_uint4(0, 0, 0, 0);
                    scales[i] = inside ? widen(edge[k + i * rows]) : 0.0f;
                }
            }
            #pragma unroll
            for (int i = 0; i < 8 * BATCH; ++i) sums[i % 8] += scales[i / 8] * widen(element_of(words[i / 8], i % 8));
        }
        #pragma unroll
        for (int j = 0; j < 8; ++j) {
            #pragma unroll
            for (int step = 4; step < 32; step *= 2) sums[j] += __shfl_xor_sync(~0u, sums[j], step);
            if (lane < 4) shares[warp][lane * 8 + j] = sums[j];
        }
        barrier_sync(15, EDGE_THREADS);
        if (warp == 0)
            put_edge(target, chunk + lane, shares[0][lane] + shares[1][lane] + shares[2][lane], epilogue);
        barrier_sync(15, EDGE_THREADS);
    }
}

// The sums of all parts of k, always in the same order.
template <class Between> static __device__ __forceinline__ void add_planes(
    const Side& side, const EdgeTarget& target, const Epilogue& epilogue, Between& between)
{
    int lane = threadIdx.x % 32, warp = blockIdx.x * EDGE_WARPS + threadIdx.x / 32 - 1;
    int pitch = (int)side.pitch;
    for (int chunk = warp * 32; chunk < pitch; chunk += gridDim.x * EDGE_THREADS) {
        const float* at = side.planes + min(chunk + lane, pitch - 1);
        float sum = 0.0f;
        for (int left = side.count; left > 0; left -= BATCH) {
            between();
            float parts[BATCH];
            #pragma unroll
            for (int i = 0; i < BATCH; ++i) {
                parts[i] = i < left ? __ldg(at) : 0.0f;
                at += pitch;
            }
            #pragma unroll
            for (int i = 0; i < BATCH; ++i) sum += parts[i];
        }
        put_edge(target, chunk + lane, sum, epilogue);
    }
}

template <class Between> static __device__ __forceinline__ void make_edge(
    const Side& side, int e, float (*shares)[32], const EdgeTarget& target, const Epilogue& epilogue, Between& between)
{
    if (side.planes)
        add_planes(side, target, epilogue, between);
    else if (side.along_k)  // asked at run time: were it known, ptxas would unroll more than registers hold
        edge_dots(side, e, target, epilogue, between);
    else
        edge_sums(side, e, shares, target, epilogue, between);
}

// m and n are where the whole tiles end.
template <class Between> static __device__ __forceinline__ void make_thin_edges(
    const ThinEdges& edges, float (*shares)[32], Element* P, int m, int n, long long ldp, const Epilogue& epilogue,
    Between between)
{
    for (int e = 0; e < edges.of_rows.edges; ++e) {
        EdgeTarget row = {P + (m + e) * ldp, 1, n + edges.of_cols.edges, 0, 1};
        make_edge(edges.of_rows, e, shares, row, epilogue, between);
    }
    for (int e = 0; e < edges.of_cols.edges; ++e) {
        EdgeTarget column = {P + n + e, ldp, m, n + e, 0};
        make_edge(edges.of_cols, e, shares, column, epilogue, between);
    }
}
