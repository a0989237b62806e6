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

// A box of `map` from element (x, y) on, x along the rows' contiguous axis.
static __device__ __forceinline__ void copy_box(void* to, const TensorMap* map, Barrier* barrier, int x, int y) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];"
        ::"r"(shared_address(to)), "l"(map), "r"(shared_address(barrier)), "r"(x), "r"(y)
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
