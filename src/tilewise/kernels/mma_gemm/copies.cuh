// Asynchronous copies from global to shared memory (cp.async), waited for in groups.

// VECTOR bytes to shared memory; with CHECKED only the first `valid` are read, the rest is 0.
template <int VECTOR, bool CHECKED>
static __device__ __forceinline__ void copy(unsigned to, const void* from, int valid)
{
    if (VECTOR == 16 && CHECKED)
        asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(valid) : "memory");
    else if (VECTOR == 16)
        asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
    else if (CHECKED)
        asm volatile("cp.async.ca.shared.global.L2::128B [%0], [%1], %2, %3;"
                     ::"r"(to), "l"(from), "n"(VECTOR), "r"(valid) : "memory");
    else
        asm volatile("cp.async.ca.shared.global.L2::128B [%0], [%1], %2;" ::"r"(to), "l"(from), "n"(VECTOR) : "memory");
}

static __device__ __forceinline__ void close_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// All but the newest `pending` groups of this thread's copies have arrived.
template <int pending> static __device__ __forceinline__ void wait_groups() {
    asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}

