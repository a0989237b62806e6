// tile: what a block of `mma_sync` makes, who of it makes what, and what its shared memory holds.

#define THREADS (WARPS_M * WARPS_N * 32)
#define WARP_M (BLOCK_M / WARPS_M)
#define WARP_N (BLOCK_N / WARPS_N)
#define MATS (WARP_M / 16)  // fragments of a warp: 16 rows of M,
#define COLS (WARP_N / 8)   // and 8 columns of N
#define PHASE_BYTES 128
#define BLOCK_K (PHASE_BYTES / SIZE)
#define STEPS (BLOCK_K / STEP_K)  // products of fragments in a phase
#define STAGE_BYTES ((BLOCK_M + BLOCK_N) * PHASE_BYTES)
#define AHEAD (STAGES - 1 - ROLLING)  // phases whose copies are on their way
#define TURNED_M (SIZE == 1 && !M_ALONG_K)
#define TURNED_N (SIZE == 1 && !N_ALONG_K)
#define PITCH (WARP_N * (int)sizeof(Result) + 16)  // of a staged row

extern __shared__ __align__(128) unsigned char memory[];
