// bring: lines of an operand into a stage, as they lie: a byte keeps its place behind a 16-byte boundary, so the boundaries of
// memory are those of the stage, whatever a line starts on.
//
// Where `pitch` is what lies between lines in memory, all lines of a piece are one run, with what is between them, and come by bulk
//   copies. Else lines lie `pitch` apart, which differs from memory by a multiple of 16 bytes, and come in 16 bytes a thread: a
//   bulk copy takes a multiprocessor 34 clocks (H200), whatever its length, and lines of a tile are short.
// Ends: a copy takes whole 16 bytes, so it brings up to 15 bytes that are not the line's. Those of other lines do no harm; 16
//   bytes that stick out of all the operand are not read: their elements come one by one.

#define COPIERS (32 * PRODUCERS)
#define CLASSES (16 / SIZE)

struct Reach { long long low, high; };  // where all members of an operand begin and end, in elements from its pointer

// An operand of all members, in bytes; `matrix` of the member that is brought.
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

static __device__ __forceinline__ void bring_elements(char* to, const char* from, const char* stop) {
    #pragma unroll 1
    for (; from < stop; from += SIZE, to += SIZE) *reinterpret_cast<Element*>(to) = *reinterpret_cast<const Element*>(from);
    publish_shared();  // the copy engine writes here again, later
}

// The words of 16 bytes that a run from `from` to `stop` lies in, but for those that stick out of all the operand.
struct Words { const char* low; const char* high; };

static __device__ __forceinline__ Words words_of(const char* from, const char* stop, const Source& of) {
    Words words = {on_boundary(from), on_boundary(stop + 15)};
    if (words.low < of.begin) words.low += 16;
    if (words.high > of.end) words.high -= 16;
    return words;
}

// What of the run is in none of these words. One thread does it, the one that says that the stage is full.
static __device__ __forceinline__ void bring_ends(char* to, const char* from, const char* stop, Words words) {
    if (words.low > from) bring_elements(to, from, words.low < stop ? words.low : stop);
    const char* rest = words.high > words.low ? words.high : words.low;
    if (rest < from) rest = from;
    if (rest < stop) bring_elements(to + (rest - from), rest, stop);
}

// `bytes` from `from` on to `to` in bulk, PIECE bytes a copy, by the copier `number`; returns what it has on its way.
static __device__ __forceinline__ unsigned bring_run(
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
    if (number == 0) bring_ends(to, from, from + bytes, words);
    return sent;
}

// Lines in 16 bytes a copy. CLASSES lines on, a line starts as far behind a boundary again, so the copier `number` takes a piece of
// every CLASSES-th line, and goes on to another piece when these are done. CHECKED: a word of the first line or of the last may
// stick out of all the operand.
template <bool CHECKED> static __device__ __forceinline__ void bring_words(
    char* to, const char* from, int lines, int bytes, const Source& of, int number)
{
    const int AT_ONCE = CHECKED ? 1 : 4;
    const int pieces = (bytes + 30) / 16;  // of a line that starts anywhere
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
        bring_ends(to, from, from + bytes, words_of(from, from + bytes, of));
        if (lines > 1) bring_ends(to + (lines - 1) * of.pitch, last, last + bytes, words_of(last, last + bytes, of));
    }
}

// `lines` of `bytes` each from `from` on, by all copiers; returns what this one has on its way in bulk.
static __device__ __forceinline__ unsigned bring_lines(
    char* region, const char* from, int lines, int bytes, const Source& of, Barrier* full, int number)
{
    char* to = region + behind_boundary(from);
    if (of.pitch == of.lead) return bring_run(to, from, (lines - 1) * of.lead + bytes, of, full, number);
    if (from - 16 >= of.begin && from + (lines - 1) * of.lead + bytes + 16 <= of.end)
        bring_words<false>(to, from, lines, bytes, of, number);
    else
        bring_words<true>(to, from, lines, bytes, of, number);
    return 0;
}
