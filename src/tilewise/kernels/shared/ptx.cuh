// ptx: Hopper's own instructions, each behind a small named function, so that kernels read as C.
//
// Barriers (mbarrier): a stage is full when its bytes have arrived, empty when its readers have.
// Copies (TMA): one thread asks for a box of a matrix; the hardware fetches, fills with 0 outside, swizzles, and reports.
// Products (wgmma): a warpgroup of 128 threads multiplies tiles in shared memory; see render.py for wgmma itself.

typedef unsigned long long Barrier;
struct __align__(64) TensorMap { unsigned long long opaque[16]; };

static __device__ __forceinline__ unsigned shared_address(const void* pointer) {
    return (unsigned)__cvta_generic_to_shared(pointer);
}

static __device__ __forceinline__ void barrier_init(Barrier* barrier, unsigned arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals));
}

// Makes the initialised barriers visible to the copy engine.
static __device__ __forceinline__ void barrier_init_done() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

static __device__ __forceinline__ void barrier_arrive(Barrier* barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}

static __device__ __forceinline__ void barrier_expect(Barrier* barrier, unsigned bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes)
                 : "memory");
}

static __device__ __forceinline__ void barrier_wait(Barrier* barrier, unsigned parity) {
    asm volatile(
        "{\n"
        ".reg .pred done;\n"
        "again:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
        "@done bra.uni ready;\n"
        "bra.uni again;\n"
        "ready:\n"
        "}\n" ::"r"(shared_address(barrier)),
        "r"(parity)
        : "memory");
}

// Whether the barrier has completed, without waiting for it; the same answer for the whole warp.
static __device__ __forceinline__ bool barrier_passed(Barrier* barrier, unsigned parity) {
    unsigned passed;
    asm volatile(
        "{\n"
        ".reg .pred done;\n"
        "mbarrier.test_wait.parity.shared::cta.b64 done, [%1], %2;\n"
        "selp.u32 %0, 1, 0, done;\n"
        "}\n" : "=r"(passed) : "r"(shared_address(barrier)), "r"(parity) : "memory");
    return __all_sync(~0u, passed);
}

// A box of `map` from element (x, y) on, x along the rows' contiguous axis.
static __device__ __forceinline__ void copy_box(void* to, const TensorMap* map, Barrier* barrier, int x, int y) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];"
        ::"r"(shared_address(to)), "l"(map), "r"(shared_address(barrier)), "r"(x), "r"(y)
        : "memory");
}

// The same box into every block of `ranks` (one bit each), at the same place of each one's shared memory and barriers.
static __device__ __forceinline__ void copy_box_to(
    void* to, const TensorMap* map, Barrier* barrier, int x, int y, unsigned short ranks)
{
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster"
        " [%0], [%1, {%3, %4}], [%2], %5;"
        ::"r"(shared_address(to)), "l"(map), "r"(shared_address(barrier)), "r"(x), "r"(y), "h"(ranks)
        : "memory");
}

// The same boxes of matrices that have two axes of a stack above their lines: member (z, w).
static __device__ __forceinline__ void copy_box(
    void* to, const TensorMap* map, Barrier* barrier, int x, int y, int z, int w)
{
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
        " [%0], [%1, {%3, %4, %5, %6}], [%2];"
        ::"r"(shared_address(to)), "l"(map), "r"(shared_address(barrier)), "r"(x), "r"(y), "r"(z), "r"(w)
        : "memory");
}

static __device__ __forceinline__ void copy_box_to(
    void* to, const TensorMap* map, Barrier* barrier, int x, int y, int z, int w, unsigned short ranks)
{
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster"
        " [%0], [%1, {%3, %4, %5, %6}], [%2], %7;"
        ::"r"(shared_address(to)), "l"(map), "r"(shared_address(barrier)), "r"(x), "r"(y), "r"(z), "r"(w), "h"(ranks)
        : "memory");
}

// `bytes` that lie side by side, a multiple of 16.
static __device__ __forceinline__ void copy_bytes(void* to, const void* from, unsigned bytes, Barrier* barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 ::"r"(shared_address(to)), "l"(from), "r"(bytes), "r"(shared_address(barrier)) : "memory");
}

// 16 bytes, by this thread's own copy; it counts once `arrive_behind_copies` has been asked for behind it.
static __device__ __forceinline__ void copy_word(void* to, const void* from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)), "l"(from) : "memory");
}

// Arrives at the barrier when all copies of this thread before it have.
static __device__ __forceinline__ void arrive_behind_copies(Barrier* barrier) {
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(shared_address(barrier)) : "memory");
}

// The same into every block of `ranks`.
static __device__ __forceinline__ void copy_bytes_to(
    void* to, const void* from, unsigned bytes, Barrier* barrier, unsigned short ranks)
{
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, [%3], %4;"
        ::"r"(shared_address(to)), "l"(from), "r"(bytes), "r"(shared_address(barrier)), "h"(ranks) : "memory");
}

// A box of shared memory out to a matrix; what would lie outside the matrix is left out by the hardware.
static __device__ __forceinline__ void store_box(const TensorMap* map, const void* from, int x, int y) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%2, %3}], [%1];"
                 ::"l"(map), "r"(shared_address(from)), "r"(x), "r"(y) : "memory");
}

static __device__ __forceinline__ void store_box(const TensorMap* map, const void* from, int x, int y, int z, int w) {
    asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4, %5}], [%1];"
                 ::"l"(map), "r"(shared_address(from)), "r"(x), "r"(y), "r"(z), "r"(w) : "memory");
}

static __device__ __forceinline__ void store_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

// The boxes given to `store_box` have been read, but for those of the last `pending` groups: their shared memory may be
// written again.
template <int pending = 0> static __device__ __forceinline__ void store_read() {
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(pending) : "memory");
}

static __device__ __forceinline__ void store_done() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }

// Ordinary writes to shared memory become visible to the copy engine and the tensor cores.
static __device__ __forceinline__ void publish_shared() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// `threads` threads meet at the named barrier `id` (0 is __syncthreads).
static __device__ __forceinline__ void meet(int id, int threads) {
    asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

static __device__ __forceinline__ unsigned cluster_rank() {
    unsigned rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

static __device__ __forceinline__ void cluster_meet() {
    asm volatile("barrier.cluster.arrive;\nbarrier.cluster.wait;" ::: "memory");
}

// Four numbers at the same place in the shared memory of a block of the cluster.
static __device__ __forceinline__ float4 load_from_block(const float* here, unsigned rank) {
    float4 found;
    asm volatile(
        "{\n"
        ".reg .b32 there;\n"
        "mapa.shared::cluster.u32 there, %4, %5;\n"
        "ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [there];\n"
        "}\n" : "=f"(found.x), "=f"(found.y), "=f"(found.z), "=f"(found.w) : "r"(shared_address(here)), "r"(rank));
    return found;
}

// Arrives at the barrier of that name in another block of the cluster.
static __device__ __forceinline__ void barrier_arrive_at(Barrier* barrier, unsigned rank) {
    asm volatile(
        "{\n"
        ".reg .b32 there;\n"
        "mapa.shared::cluster.u32 there, %0, %1;\n"
        "mbarrier.arrive.shared::cluster.b64 _, [there];\n"
        "}\n" ::"r"(shared_address(barrier)),
        "r"(rank)
        : "memory");
}

static __device__ __forceinline__ void prefetch_map(const TensorMap* map) {
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

static __device__ __forceinline__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

static __device__ __forceinline__ void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

// At most `pending` groups are still running afterwards.
template <int pending> static __device__ __forceinline__ void wgmma_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
}

// A sum is read only behind the wait above this, wherever the compiler would like to.
static __device__ __forceinline__ void settle(float& sum) { asm volatile("" : "+f"(sum)::"memory"); }
static __device__ __forceinline__ void settle(int& sum) { asm volatile("" : "+r"(sum)::"memory"); }

template <int count> static __device__ __forceinline__ void registers_give() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(count));
}

template <int count> static __device__ __forceinline__ void registers_take() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(count));
}

// Where a tile lies in shared memory, as wgmma wants to be told: 128-byte swizzle; lead and stride in bytes.
static __device__ __forceinline__ unsigned long long tile_descriptor(const void* tile, unsigned lead, unsigned stride) {
    unsigned long long address = (shared_address(tile) & 0x3ffffu) >> 4;
    return address | (unsigned long long)(lead >> 4) << 16 | (unsigned long long)(stride >> 4) << 32 | 1ull << 62;
}

// The same for eight lines side by side, 16 bytes a k, not swizzled; the next eight lie 1,024 bytes on.
static __device__ __forceinline__ unsigned long long strip_descriptor(const void* tile) {
    unsigned long long address = (shared_address(tile) & 0x3ffffu) >> 4;
    return address | (unsigned long long)(128 >> 4) << 16 | (unsigned long long)(1024 >> 4) << 32;
}

// The same for lines of 64 bytes with 64-byte swizzle, eight of them to 512 bytes.
static __device__ __forceinline__ unsigned long long plane_descriptor(const void* tile) {
    unsigned long long address = (shared_address(tile) & 0x3ffffu) >> 4;
    return address | 1ull << 16 | (unsigned long long)(512 >> 4) << 32 | 2ull << 62;
}

// Of the 8 x 8 elements that a warp holds, two side by side a lane, columns become rows.
static __device__ __forceinline__ unsigned turned_pair(unsigned pair) {
    unsigned turned;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(turned) : "r"(pair));
    return turned;
}
