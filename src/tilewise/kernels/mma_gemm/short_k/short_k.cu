// short_k: products with a k so short that storing P takes most of the time. A warp keeps COLS columns of N with all of k in registers
// and computes 16 rows of P after another; each lane has 16 neighbouring bytes of a row, and stores them directly. No shared memory, no
// barrier: the next rows of M are loaded while these are multiplied.
//
// Layout: a line is a column of N or a row of M. The mapping of k, rows and columns to fragments is free as long as both operands use
//   the same: lane (g, t) has four neighbouring halves (two float32) of k, one load where lines are aligned to 8 bytes; and, of rows g
//   and g + 8, columns from t * CHUNK to the next.
// Alignment: rows of P `classes` apart have the same misalignment. A warp takes rows of one class, and its columns begin that much
//   further left: stores are whole sectors, for any stride of P. (A sector that two warps store parts of costs a read of memory:
//   a P of 230 MB took half as long again.)
// Edges: k is padded with 0 to a whole step in both operands. Outside M and N the last line is read again; its results are not stored.

#define CHUNK (16 / SIZE)   // elements of 16 bytes
#define PARTS (CHUNK / 2)   // fragments of which a lane's sums of a row are 16 bytes
#define SPAN (PARTS * 8)    // columns of so many fragments: 64 bytes of a row
#define FRAGMENTS (COLS / 8)
#define QUADS (FRAGMENTS / PARTS)
#define EACH (STEP / 4)     // k of a step that a lane has of each line

typedef unsigned Line[STEPS][2];  // a lane's part of a line

// The first `count` elements of 8 bytes, and zeros.
static __device__ __forceinline__ void keep_first(unsigned (&words)[2], int count) {
    #pragma unroll
    for (int w = 0; w < 2; ++w) {
#if SIZE == 2
        words[w] = count >= 2 * w + 2 ? words[w] : count == 2 * w + 1 ? words[w] & 0xffffu : 0u;
#else
        words[w] = count > w ? words[w] : 0u;
#endif
    }
}

// Loads this lane's k of a line, `width` bytes at a time. A load that begins before k's end stays inside the line.
static __device__ __forceinline__ void load_line(Line& to, const Element* line, long long apart, int k, int width) {
    int t = threadIdx.x % 4;
    if (width == 8) {
        #pragma unroll
        for (int s = 0; s < STEPS; ++s) {
            uint2 two = __ldg(reinterpret_cast<const uint2*>(line + min(s * STEP + t * EACH, (k - 1) / EACH * EACH)));
            to[s][0] = two.x, to[s][1] = two.y;
        }
    } else if (width == 4) {
        #pragma unroll
        for (int i = 0; i < STEPS * 2; ++i) {
            const int pair = 4 / SIZE;
            int at = min(i / 2 * STEP + t * EACH + i % 2 * pair, (k - 1) / pair * pair);
            to[i / 2][i % 2] = __ldg(reinterpret_cast<const unsigned*>(line + at * apart));
        }
    } else {
#if SIZE == 2
        unsigned short got[STEPS * 4];
        #pragma unroll
        for (int i = 0; i < STEPS * 4; ++i) got[i] = __ldg(line + min(i / 4 * STEP + t * 4 + i % 4, k - 1) * apart);
        #pragma unroll
        for (int i = 0; i < STEPS * 2; ++i) to[i / 2][i % 2] = got[2 * i] | (unsigned)got[2 * i + 1] << 16;
#endif
    }
}

// Clears elements beyond k; apart from the loads, so that these are not waited for.
static __device__ __forceinline__ void fill_tail(Line& line, int k) {
    #pragma unroll
    for (int s = 0; s < STEPS; ++s) keep_first(line[s], k - s * STEP - threadIdx.x % 4 * EACH);
}

static __device__ __forceinline__ void store_words(Element* line, const unsigned (&words)[4], int column, int n) {
    if (column >= 0 && column + CHUNK <= n)
        *reinterpret_cast<uint4*>(line + column) = make_uint4(words[0], words[1], words[2], words[3]);
    else {
        #pragma unroll
        for (int e = 0; e < CHUNK; ++e)
            if (column + e >= 0 && column + e < n) {
#if SIZE == 2
                line[column + e] = (Element)(words[e / 2] >> e % 2 * 16);
#else
                line[column + e] = __uint_as_float(words[e]);
#endif
            }
    }
}

// `width_m`, `width_n`: bytes of a load; `classes`: rows of P with the same misalignment from SECTOR bytes are `classes` apart;
// `across`: warps of a block side by side; `row_warps`: warps that share the rows, a multiple of `classes`.
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT) short_k(
    const Element* __restrict__ M, const Element* __restrict__ N, Element* P, int m, int k, int n,
    long long m_row, long long m_col, long long n_row, long long n_col, long long p_row, int width_m, int width_n,
    int classes, int across, int panels, int row_warps,
    long long step_M, long long step_N, long long step_P)
{
    wait_on_dependent_grids();
    launch_dependent_grids();
    M += blockIdx.y * step_M, N += blockIdx.y * step_N, P += blockIdx.y * step_P;
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    int left = (blockIdx.x % panels * across + warp % across) * COLS;
    int mine = blockIdx.x / panels * (blockDim.x / 32 / across) + warp / across, kind = mine % classes;
    left -= (int)(reinterpret_cast<unsigned long long>(P + kind * p_row) % SECTOR) / SIZE;
    int group = mine / classes, next = row_warps / classes;
    if (left >= n || mine >= row_warps) return;

    Line rows[2], columns[FRAGMENTS];
    #pragma unroll
    for (int h = 0; h < 2; ++h)
        load_line(rows[h], M + min((group * 16 + h * 8 + g) * classes + kind, m - 1) * m_row, m_col, k, width_m);
    #pragma unroll
    for (int j = 0; j < FRAGMENTS; ++j) {
        int column = left + j / PARTS * SPAN + g / 2 * CHUNK + j % PARTS * 2 + g % 2;
        load_line(columns[j], N + max(0, min(column, n - 1)) * n_col, n_row, k, width_n);
    }
    #pragma unroll
    for (int j = 0; j < FRAGMENTS; ++j) fill_tail(columns[j], k);
#if SIZE == 4
    #pragma unroll
    for (int i = 0; i < FRAGMENTS * STEPS * 2; ++i) round_word(columns[i / (STEPS * 2)][i / 2 % STEPS][i % 2]);
#endif
    for (; group * 16 * classes + kind < m; group += next) {
        Line ahead[2];
        #pragma unroll
        for (int h = 0; h < 2; ++h) {
            int row = ((group + next) * 16 + h * 8 + g) * classes + kind;
            load_line(ahead[h], M + min(row, m - 1) * m_row, m_col, k, width_m);
        }
        if (k % STEP) fill_tail(rows[0], k), fill_tail(rows[1], k);
        Sum sums[FRAGMENTS][4];
        #pragma unroll
        for (int i = 0; i < FRAGMENTS * 4; ++i) sums[i / 4][i % 4] = 0;
        #pragma unroll
        for (int s = 0; s < STEPS; ++s) {
            if (s * STEP >= k) break;
            unsigned of_m[4] = {rows[0][s][0], rows[1][s][0], rows[0][s][1], rows[1][s][1]};
#if SIZE == 4
            #pragma unroll
            for (int i = 0; i < 4; ++i) round_word(of_m[i]);
#endif
            #pragma unroll
            for (int j = 0; j < FRAGMENTS; ++j) multiply(sums[j], of_m, columns[j][s]);
        }
        #pragma unroll
        for (int h = 0; h < 2; ++h) {
            int row = (group * 16 + h * 8 + g) * classes + kind;
            if (row < m) {
                #pragma unroll
                for (int q = 0; q < QUADS; ++q) {
                    unsigned words[4];
                    #pragma unroll
                    for (int w = 0; w < 4; ++w) {
#if SIZE == 2
                        put_pair(reinterpret_cast<Element*>(words + w), sums[q * 4 + w][h * 2], sums[q * 4 + w][h * 2 + 1]);
#else
                        words[w] = __float_as_uint(sums[q * 2 + w / 2][h * 2 + w % 2]);
#endif
                    }
                    store_words(P + row * p_row, words, left + q * SPAN + t * CHUNK, n);
                }
            }
        }
        #pragma unroll
        for (int i = 0; i < STEPS * 4; ++i)
            rows[i / (STEPS * 2)][i / 2 % STEPS][i % 2] = ahead[i / (STEPS * 2)][i / 2 % STEPS][i % 2];
    }
}
