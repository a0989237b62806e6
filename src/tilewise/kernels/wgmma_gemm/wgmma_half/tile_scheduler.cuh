// tile_scheduler: tiles of groups of rows take as long as they have rows, so that nobody can share them out beforehand. The producer
// draws one after the other from a counter on the card, and tells the consumers and carriers of its block.
//
// Layout: SLOTS numbers of tiles in shared memory, drawn in turn.
// Barrier: told[s] completes when slot s has a number, heard[s] when all who are told have read it.

#define SLOTS 4
#define HEARERS (4 * CONSUMERS + (CARRIED ? CARRIERS : 0))  // warps

struct Draws { Barrier* told; Barrier* heard; int* tile; };

static __device__ __forceinline__ Draws draws_after(char* staging) {
    Barrier* first = barriers_after(staging) + BARRIERS;
    return {first, first + SLOTS, reinterpret_cast<int*>(first + 2 * SLOTS)};
}

// The producer's next tile.
static __device__ __forceinline__ bool draw_work(int turn, char* staging, const Size& size, const Skews& skews, Work& work) {
#if BY_ROWS
    Draws draws = draws_after(staging);
    int slot = turn % SLOTS;
    barrier_wait(&draws.heard[slot], (turn / SLOTS & 1) ^ 1);
    int* walk = static_cast<int*>(const_cast<void*>(size.stack.groups));
    int tile = turn ? (int)gridDim.x + atomicAdd(walk + 1, 1) : (int)blockIdx.x;
    draws.tile[slot] = tile;
    barrier_arrive(&draws.told[slot]);
    return find_rows(tile, size, skews, work);
#else
    return find_work(turn, size, skews, work);
#endif
}

// Everybody else's.
static __device__ __forceinline__ bool hear_work(int turn, char* staging, const Size& size, const Skews& skews, Work& work) {
#if BY_ROWS
    Draws draws = draws_after(staging);
    int slot = turn % SLOTS;
    barrier_wait(&draws.told[slot], turn / SLOTS & 1);
    int tile = *const_cast<volatile int*>(&draws.tile[slot]);
    __syncwarp();
    if (threadIdx.x % 32 == 0) barrier_arrive(&draws.heard[slot]);
    return find_rows(tile, size, skews, work);
#else
    return find_work(turn, size, skews, work);
#endif
}
