// tile: the block tile, warp tiles and shared memory of `direct_half`.

#define BLOCK_K 64
#define THREADS (WARPS_M * WARPS_N * 32)
#define WARP_M (BLOCK_M / WARPS_M)
#define WARP_N (BLOCK_N / WARPS_N)
#define MATS (WARP_M / 16)  // fragments of a warp: 16 rows of M,
#define COLS (WARP_N / 8)   // and 8 columns of N
#define STAGES 2
#define STAGE_BYTES ((BLOCK_M + BLOCK_N) * 128)
#define PITCH (BLOCK_N * 2 + 16)  // bytes of a staged row of P

extern __shared__ __align__(128) unsigned char memory[];
