// producers: copies lines of an operand to a stage with their misalignment from 16 bytes, so that 16-byte boundaries of global memory
// are 16-byte boundaries of the stage.
//
// Where `pitch` equals the stride in memory, the lines of a stage, with the gaps between them, are one run, copied in bulk. Else
//   lines are `pitch` apart, which differs from the stride by a multiple of 16 bytes, and copied by 16 bytes a thread: a bulk copy
//   takes a multiprocessor 34 clocks (H200), whatever its length, and lines of a tile are short.
// Ends: copies are multiples of 16 bytes, with up to 15 bytes of other lines. 16 bytes across the operand's ends are copied by elements.

#define COPIERS (32 * PRODUCERS)
#define CLASSES (16 / SIZE)

struct Reach { long long low, high; };  // the extent of all members of an operand, in elements relative to its pointer

// An operand with all members, in bytes.
struct Source {
    const char* begin;
    const char* end;
    const char* matrix;
    long long lead;
    int pitch;
};

static __device__ __forceinline__ const char* on_boundary(const char* at) {
    return reinterpret_cast<const char*>(reinterpret_cast<unsigned long long>(at) & ~15ull);
}

static __device__ __forceinline__ int behind_boundary(const char* at) {
    return (int)(reinterpret_cast<unsigned long long>(at) & 15);
}

static __device__ __forceinline__ void load_elements(char* to, const char* from, const char* stop) {
    #pragma unroll 1
    for (; from < stop; from += SIZE, to += SIZE) *reinterpret_cast<Element*>(to) = *reinterpret_cast<const Element*>(from);
    fence_async_shared();  // ordered before later bulk copies to this stage
}

// The aligned 16-byte words of a run from `from` to `stop`, without those across the operand's ends.
struct Words { const char* low; const char* high; };

static __device__ __forceinline__ Words words_of(const char* from, const char* stop, const Source& of) {
    Words words = {on_boundary(from), on_boundary(stop + 15)};
    if (words.low < of.begin) words.low += 16;
    if (words.high > of.end) words.high -= 16;
    return words;
}

// The elements of the run in none of these words, by one thread.
static __device__ __forceinline__ void load_ends(char* to, const char* from, const char* stop, Words words) {
    if (words.low > from) load_elements(to, from, words.low < stop ? words.low : stop);
    const char* rest = words.high > words.low ? words.high : words.low;
    if (rest < from) rest = from;
    if (rest < stop) load_elements(to + (rest - from), rest, stop);
}

// Copies `bytes` in bulk, PIECE bytes a copy; returns the bytes that copier `number` issued.
static __device__ __forceinline__ unsigned load_run(
    char* to, const char* from, long long bytes, const Source& of, Barrier* full, int number)
{
    Words words = words_of(from, from + bytes, of);
    unsigned sent = 0;
    #pragma unroll 1
    for (const char* at = words.low + number * PIECE; at < words.high; at += COPIERS * PIECE) {
        unsigned size = (unsigned)(words.high - at < PIECE ? words.high - at : PIECE);
        copy_bytes(to + (at - from), at, size, full);
        sent += size;
    }
    if (number == 0) load_ends(to, from, from + bytes, words);
    return sent;
}

// Copies lines by 16 bytes. Every CLASSES-th line has the same misalignment, so copier `number` takes one piece of every CLASSES-th line,
// then another piece. CHECKED: a word of the first or the last line may reach outside the operand.
template <bool CHECKED> static __device__ __forceinline__ void load_words(
    char* to, const char* from, int lines, int bytes, const Source& of, int number)
{
    const int AT_ONCE = CHECKED ? 1 : 4;
    const int pieces = (bytes + 30) / 16;  // of a line with any misalignment
    const long long further = CLASSES * of.lead;
    const int further_to = CLASSES * of.pitch;
    for (int turn = number; turn < CLASSES * pieces; turn += COPIERS) {
        int first = turn / pieces;
        const char* start = from + first * of.lead;
        int at = (turn - first * pieces) * 16 - behind_boundary(start);
        if (at >= bytes) continue;
        const char* word = start + at;
        char* place = to + first * of.pitch + at;
        #pragma unroll AT_ONCE
        for (int line = first; line < lines; line += CLASSES) {
            if (!CHECKED || (word >= of.begin && word + 16 <= of.end)) copy_word(place, word);
            word += further;
            place += further_to;
        }
    }
    if (CHECKED && number == 0) {
        const char* last = from + (lines - 1) * of.lead;
        load_ends(to, from, from + bytes, words_of(from, from + bytes, of));
        if (lines > 1) load_ends(to + (lines - 1) * of.pitch, last, last + bytes, words_of(last, last + bytes, of));
    }
}

// Copies `lines` of `bytes` each; returns the bytes that this copier issued in bulk.
static __device__ __forceinline__ unsigned load_lines(
    char* region, const char* from, int lines, int bytes, const Source& of, Barrier* full, int number)
{
    char* to = region + behind_boundary(from);
    if (of.pitch == of.lead) return load_run(to, from, (lines - 1) * of.lead + bytes, of, full, number);
    if (from - 16 >= of.begin && from + (lines - 1) * of.lead + bytes + 16 <= of.end)
        load_words<false>(to, from, lines, bytes, of, number);
    else
        load_words<true>(to, from, lines, bytes, of, number);
    return 0;
}
