// The copies of one operand into a stage.

#define THREADS (WARPS_M * WARPS_N * 32)
#define WARP_M (BLOCK_M / WARPS_M)
#define WARP_N (BLOCK_N / WARPS_N)
#define MATS (WARP_M / 16)  // fragments of a warp: 16 rows of M,
#define COLS (WARP_N / 8)   // and 8 columns of N
#define BLOCK_K (PHASE_BYTES / SIZE)
#define STEPS (BLOCK_K / STEP_K)  // products of fragments in a phase
#define STAGE_BYTES ((BLOCK_M + BLOCK_N) * PHASE_BYTES)
#define AHEAD (STAGES - 1 - ROLLING)  // phases whose copies are in flight
#define TRANSPOSED_M (SIZE == 1 && !M_ALONG_K)
#define TRANSPOSED_N (SIZE == 1 && !N_ALONG_K)
#define AS_READ 1  // elements are rounded to tf32 when they are read,
#define BEHIND 2   // or one row of products later
#define PITCH_OF(width) ((width) * (int)sizeof(Result) + 16)  // of a staged row
#define STAGED_BYTES (16 * PITCH_OF(SYMMETRIC && WARP_M > WARP_N ? WARP_M : WARP_N))  // of a warp

// One operand: WIDTH rows (columns) of it a tile, in copies of VECTOR_BYTES bytes.
template <int WIDTH, bool ALONG_K>
struct Operand {
    static constexpr int LINES = ALONG_K ? WIDTH : BLOCK_K;
    static constexpr int LINE_BYTES = ALONG_K ? PHASE_BYTES : WIDTH * SIZE;
    static constexpr int PIECES = LINE_BYTES / VECTOR_BYTES;  // of a line
    static constexpr int EVERY = THREADS / PIECES;      // lines between two copies of a thread
    static constexpr int COPIES = LINES / EVERY;
    static constexpr bool BY_MATRIX = SIZE == 2 || (SIZE < 8 && ALONG_K) || BYTE_PAIRS;  // read by ldmatrix
    static_assert(THREADS % PIECES == 0 && LINES % EVERY == 0 && LINE_BYTES >= (ALONG_K ? 64 : 128), "copied evenly");

    // Swizzle of a line's 16-byte chunks.
    static __device__ __forceinline__ int swizzle(int line) {
        if constexpr (BY_MATRIX && ALONG_K && LINE_BYTES == 64) return line >> 1 & 3;
        else if constexpr (BY_MATRIX && !ALONG_K && SIZE == 1) return (line & 1) | (line >> 1 & 6);
        else return BY_MATRIX ? line & 7 : (SIZE == 1 ? line >> 2 & 3 : line & 3) << 1;
    }

    const unsigned char* from;  // this thread's first copy
    long long lead;             // bytes from line to line
    int line, start;            // its line, and offset in the line
#if REGISTER_STAGED
    unsigned staged[COPIES][VECTOR_BYTES / 4], places[COPIES];  // loaded data, and target addresses
#endif

    __device__ __forceinline__ Operand(const Element* operand, long long lead_elements, int first, int begin)
        : lead(lead_elements * SIZE), line((int)threadIdx.x / PIECES), start((int)threadIdx.x % PIECES * VECTOR_BYTES)
    {
        long long top = ALONG_K ? first : begin, along = ALONG_K ? begin : first;
        from = reinterpret_cast<const unsigned char*>(operand) + (top + line) * lead + along * SIZE + start;
    }

    // Part `part` of `parts` of a phase's copies. `inside` elements across k and `left` of k are left of the operand.
    template <bool CHECKED>
    __device__ __forceinline__ void copy_part(
        unsigned tile, const Element* operand, int inside, int left, int part, int parts)
    {
#if REGISTER_STAGED
        if (part > 0) return;  // all of them at once, so that they arrive while the phase is multiplied
        parts = 1;
#endif
        const bool even = PEELED && EVERY % (SIZE == 1 && !ALONG_K ? 16 : 8) == 0;  // all its lines have one swizzle
        const unsigned char* there = from + COPIES * part / parts * EVERY * lead;
        #pragma unroll
        for (int i = COPIES * part / parts; i < COPIES * (part + 1) / parts; ++i, there += EVERY * lead) {
            int at = line + i * EVERY;
            unsigned to = tile + at * LINE_BYTES + ((start >> 4 ^ swizzle(even ? line : at)) << 4) + (start & 15);
            int lines_left = ALONG_K ? inside : left, more = (ALONG_K ? left : inside) * SIZE - start;
            int valid = at < lines_left && more > 0 ? min(more, VECTOR_BYTES) : 0;
#if REGISTER_STAGED
            places[i] = to;
            load<CHECKED>(staged[i], there, valid);
#else
            copy<VECTOR_BYTES, CHECKED>(to, CHECKED && !valid ? (const void*)operand : there, valid);
#endif
        }
    }

#if REGISTER_STAGED
    __device__ __forceinline__ void store() const {
        #pragma unroll
        for (int i = 0; i < COPIES; ++i) put(places[i], staged[i]);
    }
#endif

    __device__ __forceinline__ void next_phase() { from += ALONG_K ? PHASE_BYTES : BLOCK_K * lead; }
};
