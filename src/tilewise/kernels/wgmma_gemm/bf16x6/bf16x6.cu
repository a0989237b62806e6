// bf16x6: float32 on tensor cores. Operands are three bfloat16 planes each (split_bf16.cu); six of the nine products of planes are
// significant in float32, and are computed from one load of the tiles.
//
// Layout: a stage holds BLOCK_M rows of M and BLOCK_N columns of N, 32 of k, three planes each. Planes have the same swizzled layout in
//   global memory, so a stage is six contiguous copies. Consumer warpgroup g owns rows 64 g .. 64 g + 63 of the tile.
// Sums: tensor cores truncate their sums, so these are kept short. The six products of a stage are summed from the smallest to the
//   largest in `parts`, from zero, and then added to `sums` on plain cores, rounded to nearest. After SEGMENT stages `sums` is added
//   to P, so that no sum has more than SEGMENT terms.
// Stores: each warp transposes its rows in shared memory, 32 columns at a time, and stores 128 bytes of a row at once, for any alignment
//   of P. With split-K (`splits`), P is that many matrices, and `combine` adds them up.
// Stacks: tiles are numbered member by member; a broadcast operand has one member's planes.
// Edges: planes are padded with zeros; results outside P are not stored.
// Barrier: full[s] completes when the tiles of stage s have arrived; empty[s] when every consumer has read them.
// Safety: where a plane may overflow or underflow (`safe`), all blocks exit and set `verdict`; then the plain kernel queued after this one
//   computes P, otherwise that exits.

#define PLANES 3
#define ROW_BYTES 64
#define TILE_M_BYTES (BLOCK_M * ROW_BYTES)
#define TILE_N_BYTES (BLOCK_N * ROW_BYTES)
#define STAGE_BYTES (PLANES * (TILE_M_BYTES + TILE_N_BYTES))
#define CONSUMERS (BLOCK_M / 64)
#define SUMS (BLOCK_N / 2)
#define PADDED 32  // lines, as split.cu pads them
#define STAGED 40  // floats from row to row of a staging: pairs of sums meet no bank twice

// Strides from member to member: of planes in bytes, of P in elements.
struct Stack { int members; long long planes_m, planes_n, cells; };

// The next tile of this block, and its member; a member's parts of k are consecutive.
static __device__ __forceinline__ bool find_tile(int turn, Size size, const Stack& stack, Work& work, int& member) {
    int splits = size.splits, steps = (size.k + BLOCK_K - 1) / BLOCK_K;
    size.splits *= stack.members;
    if (!find_work(turn, size, work)) return false;
    member = work.split / splits;
    work.split -= member * splits;
    work.from = (int)((long long)steps * work.split / splits);
    work.to = (int)((long long)steps * (work.split + 1) / splits);
    return true;
}

static __device__ __forceinline__ int padded(int lines) { return (lines + PADDED - 1) / PADDED * PADDED; }

// The bytes of a plane from line `first` on, of `most` lines at most.
static __device__ __forceinline__ unsigned bytes_from(int first, int lines, int most) {
    return max(0, min(most, padded(lines) - first)) * ROW_BYTES;
}

static __device__ __forceinline__ void produce(
    char* stages, Barrier* full, Barrier* empty, const char* all_m, const char* all_n, Size size, const Stack& stack)
{
    int member, stage = 0;
    unsigned parity = 1;  // a new barrier counts as completed in the other parity: no wait
    Work work;
    for (int turn = 0; find_tile(turn, size, stack, work, member); ++turn) {
        const char *planes_m = all_m + member * stack.planes_m, *planes_n = all_n + member * stack.planes_n;
        unsigned bytes_m = bytes_from(work.top, size.m, BLOCK_M), bytes_n = bytes_from(work.left, size.n, BLOCK_N);
        for (int step = work.from; step < work.to; ++step) {
            barrier_wait(&empty[stage], parity);
            barrier_expect(&full[stage], PLANES * (bytes_m + bytes_n));
            char* to = stages + stage * STAGE_BYTES;
            #pragma unroll 1
            for (int p = 0; p < PLANES; ++p) {
                long long plane = step * PLANES + p;
                if (bytes_m)
                    copy_bytes(to + p * TILE_M_BYTES, planes_m + (plane * padded(size.m) + work.top) * ROW_BYTES, bytes_m,
                               &full[stage]);
                copy_bytes(to + PLANES * TILE_M_BYTES + p * TILE_N_BYTES,
                           planes_n + (plane * padded(size.n) + work.left) * ROW_BYTES, bytes_n, &full[stage]);
            }
            NEXT_STAGE(stage, parity, STAGES)
        }
    }
}

// Stores a warp's 16 rows of a tile; `staging` is the warp's.
static __device__ __forceinline__ void store_sums(
    const float (&sums)[SUMS], float* staging, float* P, long long ldp, Size size, int top, int left, bool onto)
{
    int lane = threadIdx.x % 32, first = top + threadIdx.x / 32 % 4 * 16, rows = min(16, size.m - first);
    float* held = staging + lane / 4 * STAGED + lane % 4 * 2;
    #pragma unroll
    for (int i = 0; i < SUMS; i += 16) {
        int column = left + 2 * i + lane;
        if (column - lane >= size.n) break;
        #pragma unroll
        for (int j = i; j < min(i + 16, SUMS); j += 4) {
            *reinterpret_cast<float2*>(held + (j - i) * 2) = make_float2(sums[j], sums[j + 1]);
            *reinterpret_cast<float2*>(held + (j - i) * 2 + 8 * STAGED) = make_float2(sums[j + 2], sums[j + 3]);
        }
        __syncwarp();
        bool inside = column < size.n && 2 * i + lane < BLOCK_N;
        float* to = P + first * ldp + column;
        #pragma unroll 4
        for (int row = 0; row < (inside ? rows : 0); ++row, to += ldp) {
            float sum = staging[row * STAGED + lane];
            *to = onto ? *to + sum : sum;
        }
        __syncwarp();
    }
}

static __device__ __forceinline__ void consume(
    char* stages, Barrier* full, Barrier* empty, float* staging, int group, float* P, Size size, const Stack& stack,
    long long ldp, bool onto)
{
    int member, stage = 0;
    unsigned parity = 0;
    Work work;
    for (int turn = 0; find_tile(turn, size, stack, work, member); ++turn) {
        float* to = P + member * stack.cells + (long long)work.split * size.m * ldp;
        int step = work.from;
        do {
            int stop = min(step + SEGMENT, work.to);
            bool first = step == work.from;
            float sums[SUMS], parts[SUMS];
            #pragma unroll
            for (int i = 0; i < SUMS; ++i) sums[i] = parts[i] = 0.0f;
            for (; step < stop; ++step) {
                const char* tile_of_m = stages + stage * STAGE_BYTES + group * 64 * ROW_BYTES;
                const char* tile_of_n = stages + stage * STAGE_BYTES + PLANES * TILE_M_BYTES;
                unsigned long long m = plane_descriptor(tile_of_m), n = plane_descriptor(tile_of_n);
                const unsigned next_m = TILE_M_BYTES / 16, next_n = TILE_N_BYTES / 16;
                barrier_wait(&full[stage], parity);
                wgmma_fence();
                #pragma unroll
                for (int i = 0; i < 4; i += 2) wgmma(parts, m + i, n + 2 * next_n + i, i);  // first by third
                #pragma unroll
                for (int i = 0; i < 4; i += 2) wgmma(parts, m + 2 * next_m + i, n + i, 1);  // third by first
                #pragma unroll
                for (int i = 0; i < 4; i += 2) wgmma(parts, m + next_m + i, n + next_n + i, 1);  // second by second
                #pragma unroll
                for (int i = 0; i < 4; i += 2) wgmma(parts, m + i, n + next_n + i, 1);  // first by second
                #pragma unroll
                for (int i = 0; i < 4; i += 2) wgmma(parts, m + next_m + i, n + i, 1);  // second by first
                #pragma unroll
                for (int i = 0; i < 4; i += 2) wgmma(parts, m + i, n + i, 1);  // first by first
                wgmma_commit();
                wgmma_wait<0>();
                release(&empty[stage]);
                fence_operand(parts);
                #pragma unroll
                for (int i = 0; i < SUMS; ++i) sums[i] += parts[i];
                NEXT_STAGE(stage, parity, STAGES)
            }
            store_sums(sums, staging, to, ldp, size, work.top + group * 64, work.left, onto || !first);
        } while (step < work.to);
    }
}

// `safe` of all members, for every thread of the block: `met` magnitudes of either operand of each; a broadcast operand has one member's.
// A member is tested by a warp, by a thread if `met` is small, or by the whole block if it is the only one.
static __device__ __forceinline__ bool all_safe(const unsigned* largest, int met, const Stack& stack, int log_k, unsigned* most) {
    bool unsafe = false;
    if (stack.members == 1) {
        for (int i = threadIdx.x; i < 2 * met; i += blockDim.x) atomicMax(&most[i >= met], largest[i]);
        __syncthreads();
        return safe(most[0], most[1], log_k);
    }
    int lanes = met > 8 ? 32 : 1;
    for (int i = threadIdx.x / lanes; i < stack.members; i += blockDim.x / lanes) {
        const unsigned* of_m = largest + (stack.planes_m ? i : 0) * 2ll * met;
        const unsigned* of_n = largest + (stack.planes_n ? i : 0) * 2ll * met + met;
        unsigned m = 0, n = 0;
        for (int j = threadIdx.x % lanes; j < met; j += lanes) {
            m = max(m, of_m[j]);
            n = max(n, of_n[j]);
        }
        if (lanes > 1) {
            m = __reduce_max_sync(~0u, m);
            n = __reduce_max_sync(~0u, n);
        }
        unsafe |= !safe(m, n, log_k);
    }
    return !__syncthreads_or(unsafe);
}

// `onto`: accumulate onto P; `largest`: `met` magnitudes of either operand of each member.
extern "C" __global__ void __launch_bounds__(128 * (CONSUMERS + 1), 1) bf16x6(
    const char* planes_m, const char* planes_n, float* P, Size size, long long ldp, int onto, const unsigned* largest,
    int met, int log_k, unsigned* verdict, const __grid_constant__ Stack stack)
{
    extern __shared__ char memory[];
    __shared__ unsigned most[2];
    char* stages = memory + (1024 - shared_address(memory) % 1024) % 1024;
    float* staging = reinterpret_cast<float*>(stages + STAGES * STAGE_BYTES);
    Barrier* full = reinterpret_cast<Barrier*>(staging + CONSUMERS * 4 * 16 * STAGED);
    Barrier* empty = full + STAGES;
    if (threadIdx.x == 0) {
        most[0] = most[1] = 0;
        init_stages(full, empty, STAGES, 1, CONSUMERS);
        barrier_init_done();
    }
    __syncthreads();
    wait_on_dependent_grids();
    bool go = all_safe(largest, met, stack, log_k, most);
    if (blockIdx.x == 0 && threadIdx.x == 0) *verdict = !go;
    int group = threadIdx.x / 128;
    if (group == 0) {
        setmaxnreg_dec<56>();
        if (go && threadIdx.x == 0) produce(stages, full, empty, planes_m, planes_n, size, stack);
    } else {
        setmaxnreg_inc<224>();
        staging += (threadIdx.x / 32 - 4) * 16 * STAGED;
        if (go) consume(stages, full, empty, staging, group - 1, P, size, stack, ldp, onto);
    }
}
