// The operand's layout, and the start of reading, for both kinds of cores.

extern __shared__ __align__(128) unsigned char memory[];

// Addresses are computed before this, while the kernel before still runs; nothing has been read.
static __device__ __forceinline__ void sync_grids() {
    wait_on_dependent_grids();
    launch_dependent_grids();
}

static __device__ __forceinline__ void pin(const unsigned char*& at) { asm volatile("" : "+l"(at)); }
static __device__ __forceinline__ void pin(int& number) { asm volatile("" : "+r"(number)); }

struct Operand {
    const unsigned char* at;
    int line_step, k_step;  // bytes
    int first, last;        // lines
    int how;
};
