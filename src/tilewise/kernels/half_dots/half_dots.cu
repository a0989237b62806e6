// half_dots: few rows of P on tensor cores, the long operand's lines along k and starting anywhere, read once in 16-byte words.
//
// Names: A has ROWS rows or less, any strides; B has `length` lines along k, `ldb` apart; P is rows x length by any strides.
//   Where P has few columns, A is N and B is M, both turned.
// Layout: eight warps, each with every eighth line of 64: those start equally far behind a 16-byte boundary, whatever `ldb`. A
//   lane (g, q) = (lane / 4, lane % 4) reads word 4 step + q of line g, as it lies; what it holds of the k of a product
//   of fragments is its own eight in a row, so the same eight of A go with it: A lies in shared memory, and each warp takes
//   it as far shifted as its lines are.
// Edges: the first and the last word of a line go by elements, 0 outside of it; so is A.
// Order: a cluster's blocks take a part of k each, and one thread adds up an element's sums, in the order of their ranks.
// Barrier: a stage of A is used up before it is written over, and whole before it is read; the cluster meets before sums are
//   read, and before anybody leaves.

#define WARPS 8
#define THREADS (32 * WARPS)
#define LINES 64  // of a block
#define MATS (ROWS / 16)
#define STEP 32   // k of a step: a word of each of the four lanes on a line
#define PITCH (STAGE * STEP + 32)  // elements of a row of A: four words of two rows lie in all banks
#define MOST_CUT 8                 // blocks of a cluster

extern __shared__ __align__(128) unsigned char memory[];

// The eight elements from `at` on, 0 for those before the first `from` and from `to` on.
static __device__ __forceinline__ uint4 some_of(const Element* at, int from, int to) {
    unsigned made[4] = {0, 0, 0, 0};
    #pragma unroll
    for (int e = 0; e < 8; ++e)
        if (e >= from && e < to) made[e / 2] |= (unsigned)at[e] << e % 2 * 16;
    return make_uint4(made[0], made[1], made[2], made[3]);
}

// Word `word` of a line that starts `shift` elements behind a boundary.
static __device__ __forceinline__ uint4 word_of(const Element* line, int shift, int word, int k, bool there) {
    int first = 8 * word - shift;
    if (!there || first >= k) return make_uint4(0, 0, 0, 0);
    if (first >= 0 && first + 8 <= k) return __ldg(reinterpret_cast<const uint4*>(line + first));
    return some_of(line + first, -first, k - first);
}

// `count` steps of A from `step` on, eight elements before them too. What stands in rows that A does not have goes into sums that
// are not stored.
static __device__ __forceinline__ void bring_a(
    Element* held, const Element* A, int rows, int k, long long a_row, long long a_k, int step, int count)
{
    const int words = count * 4 + 1;
    int first = step * STEP - 8;
    if (a_k == 1) {
        #pragma unroll 4
        for (int i = threadIdx.x; i < rows * words; i += THREADS) {
            int r = i / words, at = first + i % words * 8;
            const Element* from = A + r * a_row + at;
            uint4 made;
            int shift = elements_after_boundary(from);
            if (at - shift >= 0 && at - shift + 16 <= k)
                made = shifted_by(__ldg(reinterpret_cast<const uint4*>(from - shift)),
                                  __ldg(reinterpret_cast<const uint4*>(from - shift + 8)), shift);
            else
                made = some_of(from, -at, k - at);
            *reinterpret_cast<uint4*>(held + r * PITCH + i % words * 8) = made;
        }
        return;
    }
    #pragma unroll 8
    for (int i = threadIdx.x; i < rows * words * 8; i += THREADS) {
        int r = i % rows, at = first + i / rows;
        held[r * PITCH + i / rows] = at >= 0 && at < k ? A[r * a_row + at * a_k] : (Element)0;
    }
}

// A warp's fragments of `ROWS` rows of A, shifted as its lines are, times those of a word of its lines.
static __device__ __forceinline__ void multiply_word(Sum (&sums)[MATS][4], const Element* held, int shift, uint4 word, int rows) {
    unsigned first[2] = {word.x, word.y}, second[2] = {word.z, word.w};
    #pragma unroll
    for (int i = 0; i < MATS; ++i) {
        uint4 of[2] = {make_uint4(0, 0, 0, 0), make_uint4(0, 0, 0, 0)};
        #pragma unroll
        for (int half = 0; half < 2; ++half) {
            if (i * 16 + half * 8 >= rows) break;
            const uint4* at = reinterpret_cast<const uint4*>(held + (i * 16 + half * 8) * PITCH);
            of[half] = at[1];
            if (shift) of[half] = shifted_by(at[0], of[half], 8 - shift);
        }
        unsigned low[4] = {of[0].x, of[1].x, of[0].y, of[1].y}, high[4] = {of[0].z, of[1].z, of[0].w, of[1].w};
        multiply(sums[i], low, first);
        multiply(sums[i], high, second);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT) half_dots(
    const Element* __restrict__ A, const Element* __restrict__ B, Element* P, Epilogue epilogue, int rows, int k, int length,
    long long a_row, long long a_k, long long ldb, long long p_row, long long p_col, int swapped)
{
    wait_for_the_one_before();
    let_the_next_start();
    Element* held = reinterpret_cast<Element*>(memory);
    int parts = cluster_blocks(), rank = cluster_rank(), base = blockIdx.x / parts * LINES;
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, q = lane % 4, line = base + warp + 8 * g;
    bool there = line < length;
    const Element* mine = B + (there ? line : 0) * ldb;
    int shift = elements_after_boundary(B + (base + warp) * ldb);
    int steps = ((k + 14) / 8 + 3) / 4, from = (int)((long long)steps * rank / parts), to = (int)((long long)steps * (rank + 1) / parts);

    Sum sums[MATS][4];
    #pragma unroll
    for (int i = 0; i < MATS * 4; ++i) sums[i / 4][i % 4] = 0;
    uint4 words[AHEAD];
    #pragma unroll
    for (int u = 0; u < AHEAD; ++u) words[u] = word_of(mine, shift, (from + u) * 4 + q, k, there);
    for (int stage = from; stage < to; stage += STAGE) {
        int end = min(stage + STAGE, to);
        __syncthreads();
        bring_a(held, A, rows, k, a_row, a_k, stage, end - stage);
        __syncthreads();
        for (int step = stage; step < end; step += AHEAD) {
            uint4 now[AHEAD];
            #pragma unroll
            for (int u = 0; u < AHEAD; ++u) now[u] = words[u];
            #pragma unroll
            for (int u = 0; u < AHEAD; ++u) words[u] = word_of(mine, shift, (step + AHEAD + u) * 4 + q, k, there);
            const Element* at = held + g * PITCH + ((step - stage) * 4 + q) * 8;
            #pragma unroll
            for (int u = 0; u < AHEAD; ++u)
                if (step + u < end) multiply_word(sums, at + u * STEP, shift, now[u], rows);
        }
    }
    __syncthreads();

    Sum* made = reinterpret_cast<Sum*>(memory);
    #pragma unroll
    for (int i = 0; i < MATS * 4; ++i)
        made[(i / 4 * 16 + i / 2 % 2 * 8 + g) * LINES + warp + 8 * (2 * q + i % 2)] = sums[i / 4][i % 4];
    if (parts > 1)
        cluster_meet();
    else
        __syncthreads();
    for (int i = rank * THREADS + threadIdx.x; i < rows * LINES; i += parts * THREADS) {
        int r = i / LINES, at = base + i % LINES;
        if (at >= length) continue;
        Sum part[MOST_CUT];  // on their way together
        #pragma unroll
        for (int other = 0; other < MOST_CUT; ++other)
            if (other < parts) part[other] = *in_block(made + i, other);
        Sum sum = part[0];
        #pragma unroll
        for (int other = 1; other < MOST_CUT; ++other)
            if (other < parts) sum += part[other];
        Element* cell = P + r * p_row + at * p_col;
        *cell = narrow(finish(sum, ACCUMULATE ? widen(*cell) : (Sum)0, bias_of(epilogue, swapped ? r : at, true), epilogue));
    }
    if (parts > 1) cluster_meet();  // nobody leaves while another reads here
}
