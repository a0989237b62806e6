// A warp's tile of float32 on plain cores: operands are copied asynchronously to the warp's own shared memory, DEEP of k a stage.
// A lane has 8 rows and TN / 4 columns of the tile, in fours, and multiplies them one k at a time.

#define LANE_ROWS (TM / 8)
#define LANE_COLS (TN / 4)
#define DEEP 8
#define PITCH_M (TM + 4)  // floats from k to k: no bank conflicts for copies along k or across it
#define PITCH_N (TN + 4)
#define STAGE (DEEP * (PITCH_M + PITCH_N))
#define ALONG 1    // how: the operand is contiguous along k,
#define VECTORS 2  // or across it, aligned to 16 bytes

// The copies of one stage, with `left` of k left.
template <int LINES, bool WHOLE>
static __device__ __forceinline__ void fetch(float* to, const Operand& x, int k0, int left) {
    int lane = threadIdx.x % 32;
    unsigned there = (unsigned)__cvta_generic_to_shared(to);
    const int pitch = LINES + 4;
    if (x.how == VECTORS) {
        int k = lane / 4, line = lane % 4 * 4;
        const unsigned char* from = x.at + (long long)(k0 + min(k, left - 1)) * x.k_step;
        #pragma unroll
        for (int i = 0; i < LINES / 16; ++i) {
            int at = x.first + line + i * 16, valid = WHOLE || k < left ? max(0, min(4, x.last + 1 - at)) * 4 : 0;
            copy<16, true>(there + (k * pitch + line + i * 16) * 4, from + (long long)(valid ? at : 0) * x.line_step, valid);
        }
    } else if (x.how & ALONG) {
        int k = lane % 8, line = lane / 8;
        bool valid = WHOLE || k < left;
        const unsigned char* from = x.at + (long long)(k0 + (valid ? k : 0)) * x.k_step;
        #pragma unroll
        for (int i = 0; i < LINES / 4; ++i)
            copy<4, !WHOLE>(there + (k * pitch + line + i * 4) * 4,
                            from + (long long)min(x.first + line + i * 4, x.last) * x.line_step, valid ? 4 : 0);
    } else {
        const int wide = LINES % 32 ? 16 : 32, deep = 32 / wide;
        int k = lane / wide, line = lane % wide;
        #pragma unroll
        for (int i = 0; i < LINES / wide; ++i) {
            const unsigned char* from = x.at + (long long)min(x.first + line + i * wide, x.last) * x.line_step;
            #pragma unroll
            for (int j = 0; j < DEEP / deep; ++j) {
                bool valid = WHOLE || k + j * deep < left;
                copy<4, !WHOLE>(there + ((k + j * deep) * pitch + line + i * wide) * 4,
                                from + (long long)(k0 + (valid ? k + j * deep : 0)) * x.k_step, valid ? 4 : 0);
            }
        }
    }
}

static __device__ __forceinline__ void fetch_stage(float* to, const Operand& M, const Operand& N, int k0, int left) {
    if (left >= DEEP) {
        fetch<TM, true>(to, M, k0, left);
        fetch<TN, true>(to + DEEP * PITCH_M, N, k0, left);
    } else if (left > 0) {
        fetch<TM, false>(to, M, k0, left);
        fetch<TN, false>(to + DEEP * PITCH_M, N, k0, left);
    }
    close_group();
}

// DEEP of k of a stage onto the lane's sums: its rows of M are at `m`, its columns of N, `pitch` floats a k, at `n`.
template <int COLS>
static __device__ __forceinline__ void multiply_stage(float (&sums)[LANE_ROWS][COLS], const float* m, const float* n, int pitch) {
    #pragma unroll
    for (int p = 0; p < DEEP; ++p) {
        float4 x[LANE_ROWS / 4], y[COLS / 4];
        #pragma unroll
        for (int i = 0; i < LANE_ROWS / 4; ++i) x[i] = *(const float4*)(m + p * PITCH_M + i * 32);
        #pragma unroll
        for (int j = 0; j < COLS / 4; ++j) y[j] = *(const float4*)(n + p * pitch + j * 16);
        #pragma unroll
        for (int i = 0; i < LANE_ROWS; ++i)
            #pragma unroll
            for (int j = 0; j < COLS; ++j) sums[i][j] += (&x[i / 4].x)[i % 4] * (&y[j / 4].x)[j % 4];
    }
}

// The lane's sums, from row `up` and column `across` of the tile on, to the warp's memory.
template <int COLS>
static __device__ __forceinline__ void put_sums(float* own, const float (&sums)[LANE_ROWS][COLS], int up, int across) {
    #pragma unroll
    for (int i = 0; i < LANE_ROWS; ++i)
        #pragma unroll
        for (int j = 0; j < COLS / 4; ++j)
            *(float4*)(own + (i / 4 * 32 + up + i % 4) * PITCH + j * 16 + across) =
                make_float4(sums[i][4 * j], sums[i][4 * j + 1], sums[i][4 * j + 2], sums[i][4 * j + 3]);
}

#if HELD
#define ACROSS_BY_16 2
#define ALONG_BY_16 3

// A stage of one operand in registers: LINES / 4 floats of a lane.
template <int LINES> struct Staged {
    float of[LINES / 4];
    int mode;

    __device__ __forceinline__ void load(const Operand& x, int k0, int left) {
        int lane = threadIdx.x % 32;
        bool whole = left >= DEEP;
        mode = whole && (x.how != ACROSS_BY_16 || x.first + LINES <= x.last + 1) ? x.how : x.how & 1;
        if (mode == ALONG_BY_16) {
            const unsigned char* from = x.at + (long long)(k0 + lane % 2 * 4) * 4;
            #pragma unroll
            for (int i = 0; i < LINES / 16; ++i)
                put(i, __ldg((const float4*)(from + (long long)min(x.first + lane / 2 + i * 16, x.last) * x.line_step)));
        } else if (mode == ACROSS_BY_16) {
            const unsigned char* from = x.at + (long long)(k0 + lane / 4) * x.k_step + (x.first + lane % 4 * 4) * 4ll;
            #pragma unroll
            for (int i = 0; i < LINES / 16; ++i) put(i, __ldg((const float4*)(from + i * 64)));
        } else if (mode == ALONG) {
            bool valid = whole || lane % 8 < left;
            const unsigned char* from = x.at + (long long)(k0 + (valid ? lane % 8 : 0)) * x.k_step;
            #pragma unroll
            for (int i = 0; i < LINES / 4; ++i) {
                float one = __ldg((const float*)(from + (long long)min(x.first + lane / 8 + i * 4, x.last) * x.line_step));
                of[i] = valid ? one : 0.0f;
            }
        } else {
            const int wide = LINES % 32 ? 16 : 32, deep = 32 / wide;
            #pragma unroll
            for (int i = 0; i < LINES / wide; ++i) {
                int line = min(x.first + lane % wide + i * wide, x.last);
                const unsigned char* from = x.at + (long long)line * x.line_step;
                #pragma unroll
                for (int j = 0; j < DEEP / deep; ++j) {
                    int k = lane / wide + j * deep;
                    bool valid = whole || k < left;
                    float one = __ldg((const float*)(from + (long long)(k0 + (valid ? k : 0)) * x.k_step));
                    of[i * (DEEP / deep) + j] = valid ? one : 0.0f;
                }
            }
        }
    }

    __device__ __forceinline__ void put(int i, float4 x) {
        of[4 * i] = x.x, of[4 * i + 1] = x.y, of[4 * i + 2] = x.z, of[4 * i + 3] = x.w;
    }

    __device__ __forceinline__ void keep(float* to) const {
        int lane = threadIdx.x % 32;
        const int pitch = LINES + 4;
        if (mode == ALONG_BY_16) {
            #pragma unroll
            for (int i = 0; i < LINES / 4; ++i) to[(lane % 2 * 4 + i % 4) * pitch + lane / 2 + i / 4 * 16] = of[i];
        } else if (mode == ACROSS_BY_16) {
            #pragma unroll
            for (int i = 0; i < LINES / 16; ++i)
                *(float4*)(to + lane / 4 * pitch + lane % 4 * 4 + i * 16) =
                    make_float4(of[4 * i], of[4 * i + 1], of[4 * i + 2], of[4 * i + 3]);
        } else if (mode == ALONG) {
            #pragma unroll
            for (int i = 0; i < LINES / 4; ++i) to[lane % 8 * pitch + lane / 8 + i * 4] = of[i];
        } else {
            const int wide = LINES % 32 ? 16 : 32, deep = 32 / wide;
            #pragma unroll
            for (int i = 0; i < LINES / 4; ++i)
                to[(lane / wide + i % (DEEP / deep) * deep) * pitch + lane % wide + i / (DEEP / deep) * wide] = of[i];
        }
    }
};

// A tile with up to WIDE columns of P; the others are neither read nor multiplied.
template <int WIDE>
static __device__ __forceinline__ void make(const Operand& M, const Operand& N, int from, int till, float* own) {
    constexpr int COLS = WIDE / 4, PITCH_WIDE = WIDE + 4, STAGE_WIDE = DEEP * (PITCH_M + PITCH_WIDE);
    float sums[LANE_ROWS][COLS];
    #pragma unroll
    for (int i = 0; i < LANE_ROWS * COLS; ++i) sums[i / COLS][i % COLS] = 0.0f;
    int lane = threadIdx.x % 32, up = lane / 4 * 4, across = lane % 4 * 4;
    Staged<TM> of_m;
    Staged<WIDE> of_n;
    pin(from), pin(till), pin(up), pin(across);
    sync_grids();
    if (from < till) {
        of_m.load(M, from, till - from);
        of_n.load(N, from, till - from);
    }
    float* stage = own;
    #pragma unroll 1
    for (int k0 = from; k0 < till; k0 += DEEP) {
        of_m.keep(stage);
        of_n.keep(stage + DEEP * PITCH_M);
        __syncwarp();
        if (k0 + DEEP < till) {
            of_m.load(M, k0 + DEEP, till - k0 - DEEP);
            of_n.load(N, k0 + DEEP, till - k0 - DEEP);
        }
        multiply_stage(sums, stage + up, stage + DEEP * PITCH_M + across, PITCH_WIDE);
        stage = stage == own ? own + STAGE_WIDE : own;
    }
    __syncwarp();  // all stages have been read: their memory takes the sums
    put_sums(own, sums, up, across);
}

static __device__ __forceinline__ void make_tile(
    const Operand& M, const Operand& N, int from, int till, Element* own, int width)
{
    if (width > TN - 16) make<TN>(M, N, from, till, own);
#if TN > 32
    else if (width > 16) make<32>(M, N, from, till, own);
#endif
#if TN > 16
    else make<16>(M, N, from, till, own);
#endif
}
#else
static __device__ __forceinline__ void make_tile(
    const Operand& M, const Operand& N, int from, int till, Element* own, int)
{
    float sums[LANE_ROWS][LANE_COLS];
    #pragma unroll
    for (int i = 0; i < LANE_ROWS * LANE_COLS; ++i) sums[i / LANE_COLS][i % LANE_COLS] = 0.0f;
    int lane = threadIdx.x % 32, up = lane / 4 * 4, across = lane % 4 * 4;
    int filling = 0, here = 0;
    pin(from), pin(till), pin(up), pin(across);
    sync_grids();
    #pragma unroll 1
    for (int k0 = from - (STAGES - 1) * DEEP; k0 < till; k0 += DEEP) {
        if (k0 >= from) {
            wait_groups<STAGES - 2>();
            __syncwarp();
        }
        int ahead = k0 + (STAGES - 1) * DEEP;
        fetch_stage(own + filling * STAGE, M, N, ahead, till - ahead);
        filling = filling + 1 == STAGES ? 0 : filling + 1;
        if (k0 < from) continue;  // the prologue only fills stages
        multiply_stage(sums, own + here * STAGE + up, own + here * STAGE + DEEP * PITCH_M + across, PITCH_N);
        here = here + 1 == STAGES ? 0 : here + 1;
    }
    wait_groups<0>();
    __syncwarp();  // all stages have been read: their memory takes the sums
    put_sums(own, sums, up, across);
}
#endif
