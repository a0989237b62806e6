// pipeline: a ring of stages in shared memory that producers fill and consumers empty, and the sums that consumers keep.

// Barriers of a ring of stages: the producer's arrivals fill a stage, the consumers' empty it. Then `barrier_init_done`.
static __device__ __forceinline__ void init_stages(Barrier* full, Barrier* empty, int stages, unsigned producers, unsigned consumers) {
    for (int s = 0; s < stages; ++s) {
        barrier_init(&full[s], producers);
        barrier_init(&empty[s], consumers);
    }
}

// On to the next stage of the ring; behind the last one the barriers' parity flips. (A macro: a function changes the SASS.)
#define NEXT_STAGE(stage, parity, stages) \
    if (++stage == stages) { stage = 0; parity ^= 1; }

template <typename Sum, int COUNT> static __device__ __forceinline__ void fence_operand(Sum (&sums)[COUNT]) {
    #pragma unroll
    for (int i = 0; i < COUNT; ++i) fence_operand(sums[i]);
}

// 0 in all sums, before the first wgmma's fence.
template <typename Sum, int COUNT> static __device__ __forceinline__ void clear(Sum (&sums)[COUNT]) {
    #pragma unroll
    for (int i = 0; i < COUNT; ++i) {
        sums[i] = 0;
        fence_operand(sums[i]);
    }
}
