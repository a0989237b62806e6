// realign: lines of 2-byte elements that start anywhere become lines that start on 128-byte boundaries.
//
// Layout: source line r starts at from + r * lead, at any even address; target line r at to + r * lead_to, a multiple of 64.
//   A warp takes 1024 elements of a line at a time, then the next that are not its neighbours': every lane loads four
//   aligned 16-byte words, all on their way before the first is used, borrows its neighbour's, and shifts the pairs by the
//   line's offset. The offset is the same for the whole warp, so the switch over it is no branch.
// Edges: words that stick out of the matrix as a whole are read element by element; past a line's end anything may follow.
// Barrier: none; neighbours exchange words by shuffle.
// Two matrices go in one launch: blockIdx.z says which. Before them a part may copy single rows or columns, `edge`, side by
//   side: their elements lie far apart, and would be the last to come.

#define SEGMENT 1024

struct Lines { const Element* from; Element* to; int lines; int length; long long lead; long long lead_to; };
struct Edge { const Element* from; Element* to; int k; int count; long long step; long long next; };  // from k to k

// 16 bytes from the 32 of (low, high), `shift` elements on.
template <int shift> static __device__ __forceinline__ uint4 shifted(uint4 low, uint4 high) {
    unsigned words[9] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w, 0};
    unsigned made[4];
    #pragma unroll
    for (int i = 0; i < 4; ++i)
        made[i] = shift % 2 ? __funnelshift_r(words[i + shift / 2], words[i + shift / 2 + 1], 16) : words[i + shift / 2];
    return make_uint4(made[0], made[1], made[2], made[3]);
}

// The word after `mine`, which a lane finds at its right neighbour; the last lane's neighbour is lane 0 of the next 256.
static __device__ __forceinline__ uint4 neighbour(uint4 mine, uint4 next) {
    int lane = threadIdx.x % 32;
    uint4 shown = lane ? mine : next, found;
    found.x = __shfl_sync(~0u, shown.x, lane + 1);
    found.y = __shfl_sync(~0u, shown.y, lane + 1);
    found.z = __shfl_sync(~0u, shown.z, lane + 1);
    found.w = __shfl_sync(~0u, shown.w, lane + 1);
    return found;
}

template <int shift> static __device__ __forceinline__ void realign_segment(
    const Element* source, Element* target, int length, const Element* first, const Element* last)
{
    int lane = threadIdx.x % 32;
    #pragma unroll 1
    for (int start = blockIdx.y * SEGMENT; start < length; start += gridDim.y * SEGMENT) {
        const Element* words = source + start - shift;
        uint4 word[5];  // the last one is the next segment's first, the same for all lanes
        if (words >= first && words + SEGMENT + 8 <= last) {
            #pragma unroll
            for (int i = 0; i < 4; ++i) word[i] = __ldg(reinterpret_cast<const uint4*>(words + i * 256 + lane * 8));
            word[4] = shift ? __ldg(reinterpret_cast<const uint4*>(words + SEGMENT)) : word[3];
        } else {
            #pragma unroll
            for (int i = 0; i < 4; ++i) word[i] = load_word(words + i * 256 + lane * 8, first, last);
            word[4] = load_word(words + SEGMENT, first, last);
        }
        #pragma unroll
        for (int i = 0; i < 4; ++i) {
            int column = start + i * 256 + lane * 8;
            uint4 whole = shift ? shifted<shift>(word[i], neighbour(word[i], word[i + 1])) : word[i];
            if (column < length) *reinterpret_cast<uint4*>(target + column) = whole;
        }
    }
}

static __device__ __forceinline__ void copy_edge(Edge edge) {
    long long first = ((long long)blockIdx.y * gridDim.x + blockIdx.x) * 256 + threadIdx.x;
    for (long long i = first; i < (long long)edge.k * edge.count; i += (long long)gridDim.x * gridDim.y * 256)
        edge.to[i] = edge.from[i % edge.k * edge.step + i / edge.k * edge.next];
}

extern "C" __global__ void __launch_bounds__(256) realign(Lines one, Lines other, Edge rows, Edge cols)
{
    let_next_kernel_start();
    int before = rows.count + cols.count > 0;
    if (blockIdx.z < before) {
        copy_edge(rows);
        copy_edge(cols);
        return;
    }
    Lines here = blockIdx.z == before ? one : other;
    int line = blockIdx.x * 8 + threadIdx.x / 32;
    if (line >= here.lines || blockIdx.y * SEGMENT >= here.length) return;
    const Element* last = here.from + (here.lines - 1) * here.lead + here.length;
    const Element* source = here.from + line * here.lead;
    Element* target = here.to + line * here.lead_to;
    switch (elements_after_boundary(source)) {
        case 0: realign_segment<0>(source, target, here.length, here.from, last); break;
        case 1: realign_segment<1>(source, target, here.length, here.from, last); break;
        case 2: realign_segment<2>(source, target, here.length, here.from, last); break;
        case 3: realign_segment<3>(source, target, here.length, here.from, last); break;
        case 4: realign_segment<4>(source, target, here.length, here.from, last); break;
        case 5: realign_segment<5>(source, target, here.length, here.from, last); break;
        case 6: realign_segment<6>(source, target, here.length, here.from, last); break;
        default: realign_segment<7>(source, target, here.length, here.from, last); break;
    }
}
