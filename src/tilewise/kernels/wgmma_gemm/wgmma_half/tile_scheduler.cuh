// tile_scheduler: dynamic scheduling of tiles of groups of rows, which differ in time. The producer takes tile numbers from a counter in
// global memory, and passes them to the consumers and carriers of its block.
//
// Layout: a queue of SLOTS tile numbers in shared memory.
// Barrier: published[s] completes when slot s has a number, taken[s] when all readers have read it.

#define SLOTS 4
#define READERS (4 * CONSUMERS + (CARRIED ? CARRIERS : 0))  // warps

struct Queue { Barrier* published; Barrier* taken; int* tile; };

static __device__ __forceinline__ Queue queue_after(char* staging) {
    Barrier* first = barriers_after(staging) + BARRIERS;
    return {first, first + SLOTS, reinterpret_cast<int*>(first + 2 * SLOTS)};
}

// The producer's next tile.
static __device__ __forceinline__ bool fetch_work(int turn, char* staging, const Size& size, const Misalignments& misalignments, Work& work) {
#if BY_ROWS
    Queue queue = queue_after(staging);
    int slot = turn % SLOTS;
    barrier_wait(&queue.taken[slot], (turn / SLOTS & 1) ^ 1);
    int* walk = static_cast<int*>(const_cast<void*>(size.stack.groups));
    int tile = turn ? (int)gridDim.x + atomicAdd(walk + 1, 1) : (int)blockIdx.x;
    queue.tile[slot] = tile;
    barrier_arrive(&queue.published[slot]);
    return find_rows(tile, size, misalignments, work);
#else
    return find_work(turn, size, misalignments, work);
#endif
}

// The next tile of consumers and carriers.
static __device__ __forceinline__ bool next_work(int turn, char* staging, const Size& size, const Misalignments& misalignments, Work& work) {
#if BY_ROWS
    Queue queue = queue_after(staging);
    int slot = turn % SLOTS;
    barrier_wait(&queue.published[slot], turn / SLOTS & 1);
    int tile = *const_cast<volatile int*>(&queue.tile[slot]);
    __syncwarp();
    if (threadIdx.x % 32 == 0) barrier_arrive(&queue.taken[slot]);
    return find_rows(tile, size, misalignments, work);
#else
    return find_work(turn, size, misalignments, work);
#endif
}
