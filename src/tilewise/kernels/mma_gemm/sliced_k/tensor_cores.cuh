// A warp's tile of float64 on tensor cores: fragments are loaded from global memory into registers, a step of 8 of k ahead.
// Lanes of a fragment read 8 lines at 4 of k: whole sectors, for any layout and alignment.

#define MATS (TM / 16)
#define COLS (TN / 8)
#define STEP 8
#define PAIRS 1    // how: a lane takes two neighbouring k, in both operands,
#define VECTORS 2  // by one load: this operand is contiguous along k and aligned to 16 bytes

// Loads a number and prefetches its 128 bytes to L2, which the next steps read. Volatile, so that it stays behind the wait for the
// kernel before.
static __device__ __forceinline__ double load(const unsigned char* at) {
#ifdef __CUDA_ARCH__
    double x;
    asm volatile("ld.global.nc.L2::128B.f64 %0, [%1];" : "=d"(x) : "l"(at));
    return x;
#else
    return *(const double*)at;
#endif
}

static __device__ __forceinline__ void load_two(const unsigned char* at, double& x, double& y) {
#ifdef __CUDA_ARCH__
    asm volatile("ld.global.nc.L2::128B.v2.f64 {%0, %1}, [%2];" : "=d"(x), "=d"(y) : "l"(at));
#else
    x = ((const double*)at)[0], y = ((const double*)at)[1];
#endif
}

// This lane's addresses in COUNT lines of an operand, 8 apart.
template <int COUNT> struct Lines {
    const unsigned char* at[COUNT];
    long long other, next;  // bytes to the lane's second k, and to the next step
    bool vectors;

    __device__ __forceinline__ Lines(const Operand& x, int from) {
        int lane = threadIdx.x % 32, pairs = x.how & PAIRS, k = from + lane % 4 * (pairs ? 2 : 1);
        other = (pairs ? 1 : 4) * (long long)x.k_step;
        next = STEP * (long long)x.k_step;
        vectors = x.how & VECTORS;
        #pragma unroll
        for (int i = 0; i < COUNT; ++i)
            at[i] = x.at + (long long)min(x.first + i * 8 + lane / 4, x.last) * x.line_step + (long long)k * x.k_step;
        #pragma unroll
        for (int i = 0; i < COUNT; ++i) pin(at[i]);
    }

    __device__ __forceinline__ void read(double (&to)[COUNT][2]) {
        if (vectors) {
            #pragma unroll
            for (int i = 0; i < COUNT; ++i) {
                load_two(at[i], to[i][0], to[i][1]);
                at[i] += next;
            }
            return;
        }
        #pragma unroll
        for (int i = 0; i < COUNT; ++i) read_one(to[i], i);
    }

    __device__ __forceinline__ void read_one(double (&to)[2], int i) {
        to[0] = load(at[i]);
        to[1] = load(at[i] + other);
        at[i] += next;
    }

    __device__ __forceinline__ void read_one_last(double (&to)[2], int i, int left, int own, int apart) const {
        to[0] = own < left ? load(at[i]) : 0.0;
        to[1] = own + apart < left ? load(at[i] + other) : 0.0;
    }

    __device__ __forceinline__ void go_on() {
        #pragma unroll
        for (int i = 0; i < COUNT; ++i) at[i] += next;
    }

    // The last step, with `left` of k: `own` is this lane's first k, own + apart its second.
    __device__ __forceinline__ void read_last(double (&to)[COUNT][2], int left, int own, int apart) const {
        #pragma unroll
        for (int i = 0; i < COUNT; ++i) read_one_last(to[i], i, left, own, apart);
    }
};

template <int USED>
static __device__ __forceinline__ void put_sums(Element* part, const double (&sums)[MATS][USED][4]) {
    int lane = threadIdx.x % 32;
    #pragma unroll
    for (int i = 0; i < MATS; ++i)
        #pragma unroll
        for (int j = 0; j < USED; ++j)
            #pragma unroll
            for (int half = 0; half < 2; ++half)
                *(double2*)(part + (i * 16 + half * 8 + lane / 4) * PITCH + j * 8 + lane % 4 * 2) =
                    make_double2(sums[i][j][2 * half], sums[i][j][2 * half + 1]);
}

// A step, and the loads of the next one meanwhile: none, all, or its last `left` of k. Rows of M are loaded over those that have been
// multiplied.
#define NOTHING 0
#define WHOLE 1
#define LAST 2
template <int NEXT, int USED>
static __device__ __forceinline__ void roll(
    double (&sums)[MATS][USED][4], double (&m)[2 * MATS][2], double (&n)[USED][2], Lines<2 * MATS>& of_m, Lines<USED>& of_n,
    int left, int own, int apart)
{
    double next[USED][2];
    if (NEXT == WHOLE) of_n.read(next);
    if (NEXT == LAST) of_n.read_last(next, left, own, apart);
    #pragma unroll
    for (int i = 0; i < MATS; ++i) {
        double rows[4] = {m[2 * i][0], m[2 * i + 1][0], m[2 * i][1], m[2 * i + 1][1]};
        #pragma unroll
        for (int j = 0; j < USED; ++j) multiply(sums[i][j], rows, n[j]);
        #pragma unroll
        for (int half = 0; half < 2; ++half) {
            if (NEXT == WHOLE) of_m.read_one(m[2 * i + half], 2 * i + half);
            if (NEXT == LAST) of_m.read_one_last(m[2 * i + half], 2 * i + half, left, own, apart);
        }
    }
    if (NEXT != NOTHING)
        #pragma unroll
        for (int j = 0; j < USED; ++j) n[j][0] = next[j][0], n[j][1] = next[j][1];
}

template <int USED>
static __device__ __forceinline__ void make(const Operand& M, const Operand& N, int from, int till, Element* part) {
    double sums[MATS][USED][4], m[2 * MATS][2], n[USED][2];
    #pragma unroll
    for (int i = 0; i < MATS * USED * 4; ++i) sums[i / (USED * 4)][i / 4 % USED][i % 4] = 0.0;
    int pairs = M.how & PAIRS, own = threadIdx.x % 4 * (pairs ? 2 : 1), apart = pairs ? 1 : 4;
    Lines<2 * MATS> of_m(M, from);
    Lines<USED> of_n(N, from);
    int left = till - from;
    sync_grids();
    of_m.read_last(m, left, own, apart);
    of_n.read_last(n, left, own, apart);
    of_m.go_on();
    of_n.go_on();
    #pragma unroll 1
    for (left -= STEP; left >= STEP; left -= STEP) roll<WHOLE>(sums, m, n, of_m, of_n, left, own, apart);
    if (left > 0) roll<LAST>(sums, m, n, of_m, of_n, left, own, apart);
    roll<NOTHING>(sums, m, n, of_m, of_n, left, own, apart);
    put_sums(part, sums);
}

// Columns outside P are neither read nor multiplied, in steps of eight.
static __device__ __forceinline__ void make_tile(
    const Operand& M, const Operand& N, int from, int till, Element* part, int width)
{
    int used = (width + 7) / 8;
    if (used >= COLS) make<COLS>(M, N, from, till, part);
#if COLS > 3
    else if (used == 3) make<3>(M, N, from, till, part);
#endif
#if COLS > 2
    else if (used == 2) make<2>(M, N, from, till, part);
#endif
    else make<1>(M, N, from, till, part);
}
