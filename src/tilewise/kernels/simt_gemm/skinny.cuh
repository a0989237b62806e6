// skinny: what few_rows and few_dots share. A is the operand with few rows (FEW x k, any strides), B the long one, which is
// read once, straight from memory; P is FEW x length by any strides. With SWAPPED, A is N and B is M, both turned: the
// product's few columns.

#define WARPS 8
#define SPACE (16 / (int)sizeof(Element))  // keeps rows of A on 16 bytes in shared memory, and apart in its banks

struct __align__(VECTOR * sizeof(Element)) Vector { Element lane[VECTOR]; };

// The i-th word of a stage of A, in the order in which A lies, along k or across: its kk and its row. What is outside is
// never stored.
struct InA {
    int kk, r;
    __device__ __forceinline__ InA(int i, bool along_k)
        : kk(along_k ? i % STAGE : i / FEW), r(along_k ? i / STAGE : i % FEW) {}
    __device__ __forceinline__ Element of(const Element* A, int rows, long long a_row, long long a_k, int stage, int stop)
    {
        return r < rows && stage + kk < stop ? A[r * a_row + (stage + kk) * a_k] : Element();
    }
};

static __device__ __forceinline__ bool lies_along_k(long long a_row, long long a_k) { return llabs(a_k) <= llabs(a_row); }

// An element of A on its way to shared memory; without asynchronous copies, or below their 4 bytes, it is there at once.
static __device__ __forceinline__ void send(Element* to, const Element* from)
{
#if __CUDA_ARCH__ >= 800
    if constexpr (sizeof(Element) >= 4) {
        unsigned there = (unsigned)__cvta_generic_to_shared(to);
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" :: "r"(there), "l"(from), "n"(sizeof(Element)) : "memory");
        return;
    }
#endif
    *to = *from;
}

static __device__ __forceinline__ void wait_for_sent()
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

// Whether the kernel before is of the same product and makes nothing that is read here, which a negative `k_each` says; then
// it is waited for at the end.
static __device__ __forceinline__ bool begin_in_turn(int& k_each)
{
    bool in_turn = k_each < 0;
    k_each = in_turn ? -k_each : k_each;
    if (!in_turn) wait_for_kernel_before();
    let_next_kernel_start();
    return in_turn;
}

// a sum taken on by a word of B and one of A
static __device__ __forceinline__ void step_on(Sum& sum, Element a, Element b, int at)
{
    if (SWAPPED) step(sum, b, a, at);
    else step(sum, a, b, at);
}

// A cell's value to P, or to this piece of k's plane of sums behind P: those are as wide as what is added up in. Which of
// them, `plane` says: the cells of one, or 0.
static __device__ __forceinline__ void leave(Result* P, long long at, Partial value, long long plane)
{
    if (plane) reinterpret_cast<Partial*>(P)[blockIdx.z * plane + at] = value;
    else STORE(P[at], value);
}
