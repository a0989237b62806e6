// matrices: `ldmatrix`: four 8 x 8 matrices of 2-byte elements from shared memory; each lane has the address of one of their rows.

template <bool TRANSPOSED>
static __device__ __forceinline__ void read_matrices(unsigned at, unsigned& a, unsigned& b, unsigned& c, unsigned& d) {
    if (TRANSPOSED)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"(at) : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"(at) : "memory");
}
