// Hopper's instructions behind a C++ compiler: what kernels/shared/ptx.cuh names, done by the fibers of fibers.h.
//
// A tensor map is plain words here (host_card.py fills them in): address, rank, four extents, the strides above the first in
// bytes, four box sides, swizzled, bytes of an element. Copies are done at once and count as arrived; wgmma is done by each thread for its own sums,
// when it is asked for. Blocks run one after the other, those of a cluster as far as they meet: what another one reads of a block
// is what that had in its memory then. No box is brought to several blocks at once.

typedef unsigned long long Barrier;
struct TensorMap { unsigned long long word[16]; };

static unsigned shared_address(const void* pointer) { return (unsigned)(size_t)pointer; }
static unsigned char* shared_pointer(unsigned long long address) {
    return memory + (((unsigned)address - (unsigned)(size_t)memory) & 0x3ffffu);
}

// A barrier's word: arrivals that are expected (16 bits), that are missing (16), bytes that are missing (31), parity.
struct BarrierState { unsigned expected : 16, missing : 16; int bytes : 31; unsigned parity : 1; };
static_assert(sizeof(BarrierState) == sizeof(Barrier), "a barrier is 8 bytes");
static BarrierState& state_of(Barrier* barrier) { return *reinterpret_cast<BarrierState*>(barrier); }
static void complete(BarrierState& state) {
    if (!state.missing && !state.bytes) state.parity ^= 1, state.missing = state.expected;
}
static void barrier_init(Barrier* barrier, unsigned arrivals) { state_of(barrier) = {arrivals, arrivals, 0, 0}; }
static void barrier_init_done() {}
static void barrier_arrive(Barrier* barrier) { --state_of(barrier).missing, complete(state_of(barrier)); }
static void barrier_expect(Barrier* barrier, unsigned bytes) {
    state_of(barrier).bytes += bytes;
    barrier_arrive(barrier);
}
// A barrier of parity p in flight has completed its phase of the other parity.
static bool barrier_test(Barrier* barrier, unsigned parity) {
    bool passed = state_of(barrier).parity != parity;
    return !__ballot_sync(~0u, !passed);
}
static void barrier_wait(Barrier* barrier, unsigned parity) {
    for (int turns = 0; state_of(barrier).parity == parity; ++turns) {
        if (turns > 1000000) fprintf(stderr, "a barrier is waited for in vain\n"), abort();
        take_turns();
    }
}

struct Box { char* base; long long extent[4], stride[4], side[4]; bool swizzled; int size; };
static Box box_of(const TensorMap* map) {
    const unsigned long long* w = map->word;
    return {(char*)w[0],
            {(long long)w[2], (long long)w[3], (long long)w[4], (long long)w[5]},
            {(long long)w[14], (long long)w[6], (long long)w[7], (long long)w[8]},
            {(long long)w[9], (long long)w[10], 1, 1},
            w[13] != 0,
            (int)w[14]};
}
// Every element of a box: its place in shared memory, and in the matrix or null outside of it.
template <class Visit> static void visit_box(void* shared, const TensorMap* map, const int (&at)[4], Visit visit) {
    Box box = box_of(map);
    if (at[0] * box.size % 16) fprintf(stderr, "a box starts on no 16 bytes\n"), abort();  // an illegal instruction, on the card
    if ((size_t)box.base % 16) fprintf(stderr, "a tensor map starts on no 16 bytes\n"), abort();
    if (at[2] < 0 || at[2] >= box.extent[2] || at[3] < 0 || at[3] >= box.extent[3])  // which the hardware would leave out
        fprintf(stderr, "a box of a member that is not there\n"), abort();
    for (int d = 1; d < 4; ++d)
        if (box.stride[d] % 16 || box.stride[d] < 0) fprintf(stderr, "a tensor map's stride is no 16 bytes\n"), abort();
    for (int y = 0; y < box.side[1]; ++y)
        for (int x = 0; x < box.side[0]; ++x) {
            unsigned place = (y * box.side[0] + x) * box.size;
            if (box.swizzled) place ^= place / 128 % 8 * 16;
            long long cell[4] = {at[0] + x, at[1] + y, at[2], at[3]}, offset = 0;
            bool inside = true;
            for (int d = 0; d < 4; ++d) {
                inside &= cell[d] >= 0 && cell[d] < box.extent[d];
                offset += cell[d] * box.stride[d];
            }
            for (int half = 0; half < box.size; half += 2)
                visit((unsigned short*)((char*)shared + place + half),
                      inside ? (unsigned short*)(box.base + offset + half) : nullptr);
        }
}
static void copy_box(void* to, const TensorMap* map, Barrier* barrier, int x, int y, int z = 0, int w = 0) {
    int arrived = 0;
    visit_box(to, map, {x, y, z, w}, [&](unsigned short* shared, unsigned short* cell) {
        *shared = cell ? *cell : 0;
        arrived += 2;
    });
    state_of(barrier).bytes -= arrived;
    complete(state_of(barrier));
}
static void copy_box_multicast(void*, const TensorMap*, Barrier*, int, int, unsigned short) { abort(); }
static void copy_box_multicast(void*, const TensorMap*, Barrier*, int, int, int, int, unsigned short) { abort(); }
static void store_box(const TensorMap* map, const void* from, int x, int y, int z = 0, int w = 0) {
    visit_box((void*)from, map, {x, y, z, w}, [&](unsigned short* shared, unsigned short* cell) {
        if (cell) *cell = *shared;
    });
}
static void store_commit() {}
template <int pending = 0> static void store_wait_read() {}
static void store_wait_all() {}
static void fence_async_shared() {}

static unsigned met[16], rounds[16];
static void barrier_sync(int id, int threads) {
    unsigned before = rounds[id];
    if (++met[id] == (unsigned)threads) met[id] = 0, ++rounds[id];
    do take_turns();
    while (rounds[id] == before);
}
static unsigned cluster_rank() { return blockIdx.x % cluster_size; }
static float4 load_from_block(const float* here, unsigned rank) {
    if (rank >= cluster_size) fprintf(stderr, "a block that is in no cluster\n"), abort();
    if (cluster_size == 1) return *(const float4*)here;
    return *(const float4*)(kept_memory[rank] + ((const unsigned char*)here - memory));
}
static void cluster_sync() { wait_for_cluster(); }
static void barrier_arrive_at(Barrier*, unsigned) { abort(); }
static void prefetch_map(const TensorMap*) {}
static void wgmma_fence() {}
static void wgmma_commit() {}
template <int pending> static void wgmma_wait() { take_turns(); }
static void fence_operand(float&) {}
template <int count> static void setmaxnreg_dec() {}
template <int count> static void setmaxnreg_inc() {}

static unsigned long long tile_descriptor(const void* tile, unsigned lead, unsigned stride) {
    unsigned long long address = (shared_address(tile) & 0x3ffffu) >> 4;
    return address | (unsigned long long)(lead >> 4) << 16 | (unsigned long long)(stride >> 4) << 32 | 1ull << 62;
}
static unsigned long long plane_descriptor(const void* tile) { return tile_descriptor(tile, 16, 512) ^ 3ull << 62; }
static unsigned long long strip_descriptor(const void* tile) { return tile_descriptor(tile, 128, 1024) ^ 1ull << 62; }
static void copy_bytes(void* to, const void* from, unsigned bytes, Barrier* barrier) {
    if ((size_t)to % 16 || (size_t)from % 16 || bytes % 16) fprintf(stderr, "bytes on no 16 bytes\n"), abort();
    check_read(from, bytes);
    memcpy(to, from, bytes);
    state_of(barrier).bytes -= bytes;
    complete(state_of(barrier));
}
static void copy_word(void* to, const void* from) {
    if ((size_t)to % 16 || (size_t)from % 16) fprintf(stderr, "16 bytes on no 16 bytes\n"), abort();
    check_read(from, 16);
    memcpy(to, from, 16);
}
static void arrive_after_copies(Barrier* barrier) { barrier_arrive(barrier); }
// Element (line, k) of an operand as wgmma reads it. K-major: lines of 64 k. Else k across: 64 lines side by side in boxes of
// 8,192 bytes, 128 bytes a k.
static unsigned short operand_at(unsigned long long descriptor, int line, int k, bool transposed) {
    unsigned start = (unsigned)(descriptor & 0x3fff) << 4, place;
    unsigned lead = (unsigned)(descriptor >> 16 & 0x3fff) << 4, stride = (unsigned)(descriptor >> 32 & 0x3fff) << 4;
    if (descriptor >> 62 == 2) {  // lines of 64 bytes
        unsigned address = start + line / 8 * stride + line % 8 * 64 + k * 2;
        return *(unsigned short*)shared_pointer(address ^ address / 128 % 4 * 16);
    }
    if (descriptor >> 62 == 0)  // eight lines side by side
        return *(unsigned short*)shared_pointer(start + line / 8 * stride + k / 8 * lead + k % 8 * 16 + line % 8 * 2);
    if (transposed)
        place = line / 64 * lead + k / 8 * stride + k % 8 * 128 + line % 64 * 2;
    else
        place = line / 8 * stride + line % 8 * 128 + k * 2;
    unsigned address = start + place;
    address ^= address / 128 % 8 * 16;  // tiles lie on 1,024 bytes: the swizzle is of the address itself
    return *(unsigned short*)shared_pointer(address);
}
static unsigned transposed_pair(unsigned pair) {  // of an 8 x 8 of a warp, columns become rows
    unsigned me = threadIdx.x, lane = me % 32;
    exchanged[me] = pair;
    take_turns();
    unsigned made = 0;
    for (int e = 0; e < 2; ++e) {  // element (row lane / 4, column lane % 4 * 2 + e) is column and row of the other
        unsigned row = lane % 4 * 2 + e, column = lane / 4;
        unsigned held = exchanged[me / 32 * 32 + row * 4 + column / 2];
        made |= (held >> column % 2 * 16 & 0xffffu) << e * 16;
    }
    take_turns();
    return made;
}
