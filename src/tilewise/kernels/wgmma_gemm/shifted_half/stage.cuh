// stage: what a block of `shifted_half` makes, who of it does what, and what its shared memory and registers hold.

#define CONSUMERS (BLOCK_M / 64)  // warpgroups that multiply
#define THREADS (128 * (LOADERS + CONSUMERS))
#define STEP (16 * LOADERS)  // lines that the loader threads bring at a time, 16 bytes each
#define STAGE_BYTES ((BLOCK_M + BLOCK_N) * 128)
#define SUMS (BLOCK_N / 2)
#define PITCH (BLOCK_N * 2 + 16)  // bytes of a staged row of P
#define LAUNCH_REGISTERS (65536 / RESIDENT / THREADS / 8 * 8)  // a thread's, before they are given and taken
static_assert(LOADERS * LOADER_REGISTERS + CONSUMERS * CONSUMER_REGISTERS <= (LOADERS + CONSUMERS) * LAUNCH_REGISTERS,
              "consumers would wait for ever for registers that nobody gives");
static_assert(BLOCK_M * PITCH <= STAGES * STAGE_BYTES, "stages hold the sums");
