// register_lines: which words of an operand in shared memory, contiguous along k (ALONG) or across it, a thread has for wgmma's left operand.
//
// Layout: boxes of lines PITCH bytes apart, as the copy engine brings them. With ALONG or APART lines start anywhere: every fourth one
//   starts equally far from a 16-byte boundary, so a map for each of the four classes brings them from the boundary before on, into boxes
//   of their own, BOX_BYTES each; a thread's lines, or its k, are of one class, whose misalignment is part of where it reads. Else lines
//   start on 16 bytes, or all equally far behind.
// Banks: the 32 words that a warp reads at once lie in different banks: with ALONG because lines are 36 words apart; with APART where the
//   misalignments do, because a thread takes every fourth line; else because lines are 136 words apart.
// A kernel defines ALONG, APART, PITCH, BOX_BYTES, and FIRST_GROUP: the warpgroups before its consumers.

#define LINES_ON (ALONG || APART ? 32 : 8)  // lines of a tile from a thread's first sums to its second

// The line of a tile that this thread's first sums are of.
static __device__ __forceinline__ int line_of_thread() {
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4, group = threadIdx.x / 128 - FIRST_GROUP;
    return group * 64 + (ALONG || APART ? lane / 4 * 4 + warp : warp * 16 + lane / 4);
}

// Where the first word lies that this thread needs of a stage whose k begins `early`.
static __device__ __forceinline__ const char* first_word(const char* tile, const int* misalignments, int early) {
    int k = threadIdx.x % 4, line = line_of_thread();
    if (ALONG) return tile + line % 4 * BOX_BYTES + line / 4 * PITCH + (k + misalignments[line % 4]) * 4;
    return tile + k * (APART ? BOX_BYTES : PITCH) + (line + misalignments[APART ? (k - early) & 3 : 0]) * 4;
}

// A thread's share of a stage: for each eight of k two lines of k, then two of k + 4.
static __device__ __forceinline__ void load_words(unsigned (&words)[16], const char* first) {
    const int next_k = ALONG ? 16 : (APART ? 1 : 4) * PITCH, next_line = ALONG ? LINES_ON / 4 * PITCH : LINES_ON * 4;
    #pragma unroll
    for (int i = 0; i < 16; ++i) words[i] = *reinterpret_cast<const unsigned*>(first + i / 2 * next_k + i % 2 * next_line);
}
