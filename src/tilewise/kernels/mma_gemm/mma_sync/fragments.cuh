// Fragments of both operands from shared memory, as `operand.cuh` lays them out.

extern __shared__ __align__(128) unsigned char memory[];

typedef Operand<BLOCK_M, M_ALONG_K> OperandM;
typedef Operand<BLOCK_N, N_ALONG_K> OperandN;

static __device__ __forceinline__ void read_word(unsigned at, unsigned& word) {
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(word) : "r"(at));
}

static __device__ __forceinline__ void read_word(unsigned at, double& word) {
    asm volatile("ld.shared.f64 %0, [%1];" : "=d"(word) : "r"(at));
}

// Four bytes of each of four k become four k of each of four bytes.
static __device__ __forceinline__ void read_transposed(unsigned at, int line_bytes, unsigned (&made)[4]) {
    unsigned x[4];
    #pragma unroll
    for (int i = 0; i < 4; ++i) read_word(at + i * line_bytes, x[i]);
    unsigned low01 = __byte_perm(x[0], x[1], 0x5140), low23 = __byte_perm(x[2], x[3], 0x5140);
    unsigned high01 = __byte_perm(x[0], x[1], 0x7362), high23 = __byte_perm(x[2], x[3], 0x7362);
    made[0] = __byte_perm(low01, low23, 0x5410);
    made[1] = __byte_perm(low01, low23, 0x7632);
    made[2] = __byte_perm(high01, high23, 0x5410);
    made[3] = __byte_perm(high01, high23, 0x7632);
}

// The same of 16 k, twice, by `ldmatrix` that transposes pairs of bytes: of even rows (columns), and of odd ones.
static __device__ __forceinline__ void read_pairs(
    unsigned at, unsigned& even, unsigned& odd, unsigned& even2, unsigned& odd2)
{
    unsigned x[4];
    read_matrices<true>(at, x[0], x[1], x[2], x[3]);
    even = __byte_perm(x[0], x[1], 0x6420);
    odd = __byte_perm(x[0], x[1], 0x7531);
    even2 = __byte_perm(x[2], x[3], 0x6420);
    odd2 = __byte_perm(x[2], x[3], 0x7531);
}

// A lane's offset in the tile without the fragment's number; `first` is the warp's first row (column). The offset and the number have no
// bits in common, so ^ combines them with the swizzle.
template <int LINE_BYTES, bool ALONG_K, bool BY_MATRIX, bool SECOND>
static __device__ __forceinline__ unsigned lane_offset(int first)
{
    int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    if (BY_MATRIX) {  // a lane holds the address of one line of four matrices
        int low = lane % 8, mid = lane / 8 % 2, high = lane / 16;
        int other = SECOND ? mid : high, same = SECOND ? high : mid;  // along k: which 16 bytes; across: which 8
        if (ALONG_K) return (first + same * 8 + low) * LINE_BYTES + ((other ^ low >> (LINE_BYTES == 64)) << 4);
        if constexpr (SIZE == 1) return (high * 16 + low / 2 * 4 + mid * 2 + low % 2) * LINE_BYTES + ((first / 16 ^ low) << 4);
        return (other * 8 + low) * LINE_BYTES + ((first / 8 + same ^ low) << 4);
    }
    if (SIZE == 8 && ALONG_K) return (first + g) * LINE_BYTES + ((t / 2 ^ (g & 3) << 1) << 4) + t % 2 * 8;
    if (SIZE == 8) return t * LINE_BYTES + ((first / 2 + g / 2 ^ t << 1) << 4) + g % 2 * 8;
    if (SIZE == 4) return t * LINE_BYTES + ((first / 4 + g / 4 ^ t << 1) << 4) + g % 4 * 4;
    return 4 * t * LINE_BYTES + ((first / 16 + g / 4 ^ t << 1) << 4) + g % 4 * 4;
}

// One fragment of 16 rows of M at `step`: k from step * STEP_K on. Transposed bytes are read for two fragments at a time.
static __device__ __forceinline__ void read_rows(Word (*to)[4], unsigned tile, unsigned lane, int step, int i)
{
    const int line = OperandM::LINE_BYTES;
#if SIZE == 8
    #pragma unroll
    for (int w = 0; w < 4; ++w) {
        int k = step * STEP_K + w / 2 * 4;
        read_word(tile + (M_ALONG_K ? (lane ^ k * 8) + (i * 16 + w % 2 * 8) * line
                                    : (lane ^ i * 128 + w % 2 * 64) + k * line), to[0][w]);
    }
#else
    if constexpr (BYTE_PAIRS && !M_ALONG_K)
        read_pairs(tile + (lane ^ i * 16) + step * STEP_K * line, to[0][0], to[0][1], to[0][2], to[0][3]);
    else if (OperandM::BY_MATRIX)
        read_matrices<!M_ALONG_K>(
            tile + (M_ALONG_K ? (lane ^ step * 32) + i * 16 * line : (lane ^ i * 32) + step * STEP_K * line),
            to[0][0], to[0][1], to[0][2], to[0][3]);
    else if (SIZE == 4) {
        #pragma unroll
        for (int w = 0; w < 4; ++w)
            read_word(tile + (lane ^ i * 64 + w % 2 * 32) + (step * STEP_K + w / 2 * 4) * line, to[0][w]);
    } else if (i % 2 == 0) {
        unsigned low[4], high[4];
        read_transposed(tile + (lane ^ i * 16) + step * STEP_K * line, line, low);
        read_transposed(tile + (lane ^ i * 16) + (step * STEP_K + 16) * line, line, high);
        #pragma unroll
        for (int j = 0; j < 4; ++j) {
            to[j / 2][j % 2] = low[j];
            to[j / 2][2 + j % 2] = high[j];
        }
    }
#endif
#if ROUNDED == AS_READ
    #pragma unroll
    for (int w = 0; w < 4; ++w) round_word(to[0][w]);
#endif
}

// Fragments `from` to `until` of 8 columns of N each; ldmatrix reads two at a time, transposed bytes are read by fours.
static __device__ __forceinline__ void read_columns(
    Word (&to)[COLS][2], unsigned tile, unsigned lane, int step, int from, int until)
{
    const int line = OperandN::LINE_BYTES;
    #pragma unroll
    for (int j = from; j < until; ++j) {
#if SIZE == 8
        #pragma unroll
        for (int w = 0; w < 2; ++w) {
            int k = step * STEP_K + w * 4;
            read_word(tile + (N_ALONG_K ? (lane ^ k * 8) + j * 8 * line : (lane ^ j * 64) + k * line), to[j][w]);
        }
#else
        const int more = j + 1 < COLS ? j + 1 : j;
        if constexpr (BYTE_PAIRS && !N_ALONG_K) {
            if (j % 2 == 0)
                read_pairs(tile + (lane ^ j * 8) + step * STEP_K * line, to[j][0], to[more][0], to[j][1], to[more][1]);
        } else if (OperandN::BY_MATRIX) {
            if (j % 2 == 0)
                read_matrices<!N_ALONG_K>(
                    tile + (N_ALONG_K ? (lane ^ step * 32) + j * 8 * line : (lane ^ j * 16) + step * STEP_K * line),
                    to[j][0], to[j][1], to[more][0], to[more][1]);
        } else if (SIZE == 4) {
            #pragma unroll
            for (int w = 0; w < 2; ++w)
                read_word(tile + (lane ^ j * 32) + (step * STEP_K + w * 4) * line, to[j][w]);
        } else if (j % 4 == 0) {
            unsigned low[4], high[4];
            read_transposed(tile + (lane ^ j * 8) + step * STEP_K * line, line, low);
            read_transposed(tile + (lane ^ j * 8) + (step * STEP_K + 16) * line, line, high);
            #pragma unroll
            for (int e = 0; e < 4; ++e) {
                to[(j + e) % COLS][0] = low[e];
                to[(j + e) % COLS][1] = high[e];
            }
        }
#endif
#if ROUNDED == AS_READ
        if (!OperandN::BY_MATRIX || j % 2 == 0) {
            #pragma unroll
            for (int w = 0; w < 2; ++w) {
                round_word(to[j][w]);
                if (OperandN::BY_MATRIX) round_word(to[more][w]);
            }
        }
#endif
    }
}
