// What both kinds of cores have alike: how an operand lies, and when reading begins.

extern __shared__ __align__(128) unsigned char memory[];

// What has been reckoned so far is there before the kernel before is done; nothing has been read.
static __device__ __forceinline__ void begin() {
    wait_for_kernel_before();
    let_next_kernel_start();
}

static __device__ __forceinline__ void now(const unsigned char*& at) { asm volatile("" : "+l"(at)); }
static __device__ __forceinline__ void now(int& number) { asm volatile("" : "+r"(number)); }

struct Operand {
    const unsigned char* at;
    int line_step, k_step;  // bytes
    int first, last;        // lines
    int how;
};
