// ptx: Hopper's instructions as functions.
//
// Barriers (mbarrier): `full` completes when a stage's bytes have arrived, `empty` when its readers have.
// Copies (TMA): one thread issues the copy of a box of a matrix; outside is 0, swizzled, completes on a barrier.
// Products (wgmma): a warpgroup of 128 threads multiplies tiles in shared memory; wgmma_gemm/instruction.py has wgmma.

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
static __device__ __forceinline__ bool barrier_test(Barrier* barrier, unsigned parity) {
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

// The same box into every block of `ranks` (a bit mask), at the same address of each one's shared memory.
static __device__ __forceinline__ void copy_box_multicast(
    void* to, const TensorMap* map, Barrier* barrier, int x, int y, unsigned short ranks)
{
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster"
        " [%0], [%1, {%3, %4}], [%2], %5;"
        ::"r"(shared_address(to)), "l"(map), "r"(shared_address(barrier)), "r"(x), "r"(y), "h"(ranks)
        : "memory");
}

// The same of member (z, w) of a stack: tensor maps of rank 4.
static __device__ __forceinline__ void copy_box(
    void* to, const TensorMap* map, Barrier* barrier, int x, int y, int z, int w)
{
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
        " [%0], [%1, {%3, %4, %5, %6}], [%2];"
        ::"r"(shared_address(to)), "l"(map), "r"(shared_address(barrier)), "r"(x), "r"(y), "r"(z), "r"(w)
        : "memory");
}

static __device__ __forceinline__ void copy_box_multicast(
    void* to, const TensorMap* map, Barrier* barrier, int x, int y, int z, int w, unsigned short ranks)
{
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster"
        " [%0], [%1, {%3, %4, %5, %6}], [%2], %7;"
        ::"r"(shared_address(to)), "l"(map), "r"(shared_address(barrier)), "r"(x), "r"(y), "r"(z), "r"(w), "h"(ranks)
        : "memory");
}

// `bytes` contiguous bytes, a multiple of 16.
static __device__ __forceinline__ void copy_bytes(void* to, const void* from, unsigned bytes, Barrier* barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 ::"r"(shared_address(to)), "l"(from), "r"(bytes), "r"(shared_address(barrier)) : "memory");
}

// 16 bytes by this thread (cp.async); `arrive_after_copies` signals their arrival.
static __device__ __forceinline__ void copy_word(void* to, const void* from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)), "l"(from) : "memory");
}

// Arrives at the barrier when all earlier cp.async of this thread have completed.
static __device__ __forceinline__ void arrive_after_copies(Barrier* barrier) {
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(shared_address(barrier)) : "memory");
}

// A box of shared memory to a matrix; elements outside the matrix are not written.
static __device__ __forceinline__ void store_box(const TensorMap* map, const void* from, int x, int y) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%2, %3}], [%1];"
                 ::"l"(map), "r"(shared_address(from)), "r"(x), "r"(y) : "memory");
}

static __device__ __forceinline__ void store_box(const TensorMap* map, const void* from, int x, int y, int z, int w) {
    asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4, %5}], [%1];"
                 ::"l"(map), "r"(shared_address(from)), "r"(x), "r"(y), "r"(z), "r"(w) : "memory");
}

static __device__ __forceinline__ void store_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

// Waits until all but the last `pending` groups of `store_box` have read their shared memory.
template <int pending = 0> static __device__ __forceinline__ void store_wait_read() {
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(pending) : "memory");
}

static __device__ __forceinline__ void store_wait_all() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }

// Makes ordinary writes to shared memory visible to the TMA and to wgmma (the async proxy).
static __device__ __forceinline__ void fence_async_shared() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// Named barrier `id` of `threads` threads (0 is __syncthreads).
static __device__ __forceinline__ void barrier_sync(int id, int threads) {
    asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// Four floats from the same address in the shared memory of a block of the cluster.
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

// Arrives at the same barrier in another block of the cluster.
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

// Keeps the compiler from moving uses of a sum across wgmma's fences and waits.
static __device__ __forceinline__ void fence_operand(float& sum) { asm volatile("" : "+f"(sum)::"memory"); }
static __device__ __forceinline__ void fence_operand(int& sum) { asm volatile("" : "+r"(sum)::"memory"); }

template <int count> static __device__ __forceinline__ void setmaxnreg_dec() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(count));
}

template <int count> static __device__ __forceinline__ void setmaxnreg_inc() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(count));
}

// wgmma's descriptor of a tile in shared memory with 128-byte swizzle; lead and stride in bytes.
static __device__ __forceinline__ unsigned long long tile_descriptor(const void* tile, unsigned lead, unsigned stride) {
    unsigned long long address = (shared_address(tile) & 0x3ffffu) >> 4;
    return address | (unsigned long long)(lead >> 4) << 16 | (unsigned long long)(stride >> 4) << 32 | 1ull << 62;
}

// The same without swizzle: eight columns, 16 bytes a k; the next eight are 1,024 bytes on.
static __device__ __forceinline__ unsigned long long strip_descriptor(const void* tile) {
    unsigned long long address = (shared_address(tile) & 0x3ffffu) >> 4;
    return address | (unsigned long long)(128 >> 4) << 16 | (unsigned long long)(1024 >> 4) << 32;
}

// The same with 64-byte swizzle: rows of 64 bytes, eight of them in 512 bytes.
static __device__ __forceinline__ unsigned long long plane_descriptor(const void* tile) {
    unsigned long long address = (shared_address(tile) & 0x3ffffu) >> 4;
    return address | 1ull << 16 | (unsigned long long)(512 >> 4) << 32 | 2ull << 62;
}

// Transposes the 8 x 8 elements that a warp has in registers, two a lane.
static __device__ __forceinline__ unsigned transposed_pair(unsigned pair) {
    unsigned transposed;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(transposed) : "r"(pair));
    return transposed;
}
