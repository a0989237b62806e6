// stage: the layout of a stage of `read_once`, and the kernel's arguments.

#define LONG 128
#define PRODUCERS (GATHERED ? 128 : 32)  // threads
#define PAIRS (WIDTH / 8)  // of k and k + 4 of a few line, that a producer gathers in a stage
#define BLOCK_K 32
#define CONSUMERS 2
#define FIRST_GROUP 0
#define SUMS (WIDTH / 2)  // of a thread
#define CLASSES (ALONG || APART ? 4 : 1)
#define PITCH (ALONG ? 144 : APART ? 528 : 544)  // bytes from line to line of a box of the long operand
#define BOX_BYTES ((ALONG ? 32 : 8) * PITCH)     // the lines of a class
#define LONG_BYTES ((ALONG ? LONG : BLOCK_K) * PITCH)
#define PLANE_BYTES (WIDTH * 64)
#define FEW_BYTES (PLANES == 1 ? WIDTH * 128 : PLANES * PLANE_BYTES)
#define STAGE_BYTES ((FEW_BYTES + LONG_BYTES + 1023) / 1024 * 1024)
#define MOST_BLOCKS 8  // of a cluster
#define HELD_BYTES (4 * (LONG * (WIDTH + 4) > WIDTH * (LONG + 4) ? LONG * (WIDTH + 4) : WIDTH * (LONG + 4)))
static_assert(HELD_BYTES <= STAGES * STAGE_BYTES, "the sums of a tile lie where its stages were");

static __device__ __forceinline__ unsigned rounded(float x) {
    unsigned bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
    return bits;
}

struct MapsOfLong { TensorMap of[CLASSES]; };

// `transposed`: P has few rows. `plane`: elements between the matrices of partial sums of a tile's clusters.
struct Product {
    float* P;
    const char* planes;  // of the few lines
    const unsigned* largest;
    unsigned* verdict;
    long long ldp, plane;
    int few, k, length, transposed, onto, met, log_k;
    int misalignments[4];  // in elements
    const float* few_at;
    const float* long_at;
    long long few_stride, few_k, long_stride, long_k;  // in elements, from line to line and along k
};

struct Part { int from, to; };  // of the stages of k
