// What mma_sync/copies.cuh and the products of fragments are behind a C++ compiler. Copies are done as late as they may be:
// when their group is waited for.
#include <deque>

struct Copy { unsigned char* to; const unsigned char* from; int bytes, valid; };
static std::deque<std::vector<Copy>> on_their_way[1024];
static std::vector<Copy> not_closed[1024];

static size_t __cvta_generic_to_shared(const void* at) { return (const unsigned char*)at - memory; }

template <int VECTOR, bool CHECKED> static void copy(unsigned to, const void* from, int valid) {
    if (to % VECTOR || (valid && (size_t)from % VECTOR)) fprintf(stderr, "a copy of %d bytes on others\n", VECTOR), abort();
    not_closed[threadIdx.x].push_back({memory + to, (const unsigned char*)from, VECTOR, CHECKED ? valid : VECTOR});
}

static void close_group() {
    on_their_way[threadIdx.x].push_back(not_closed[threadIdx.x]);
    not_closed[threadIdx.x].clear();
}

template <int pending> static void wait_groups() {
    auto& groups = on_their_way[threadIdx.x];
    for (; groups.size() > pending; groups.pop_front())
        for (Copy& each : groups.front()) {
            memset(each.to, 0, each.bytes);
            memcpy(each.to, each.from, each.valid);
        }
}

static void round_word(unsigned& word) { word = (word + 0x1000u) & 0xffffe000u; }
static double number_of(double word) { return word; }
static float number_of(unsigned word) { return __uint_as_float(word); }

// 16 x 8 sums of a warp take on 8 of k.
template <typename Number, typename Fragment>
static void multiply(Number (&sums)[4], const Fragment (&m)[4], const Fragment (&n)[2]) {
    static Fragment of_m[1024][4], of_n[1024][2];
    unsigned me = threadIdx.x, warp = me / 32 * 32, g = me % 32 / 4, t = me % 4;
    memcpy(of_m[me], m, sizeof m);
    memcpy(of_n[me], n, sizeof n);
    take_turns();
    for (unsigned e = 0; e < 4; ++e)
        for (unsigned k = 0; k < 8; ++k)
            sums[e] += number_of(of_m[warp + g * 4 + k % 4][e / 2 + k / 4 * 2]) *
                       number_of(of_n[warp + (2 * t + e % 2) * 4 + k % 4][k / 4]);
    take_turns();
}

// `mma_sync` of any card and element. A lane's word is 4 bytes of k of one row of M or column of N.
static float f16_number(unsigned bits) { return half_bits_to_float((unsigned short)bits); }
static float bf16_number(unsigned bits) { return bf16_value((unsigned short)bits); }
static float tf32_number(unsigned bits) { return __uint_as_float(bits); }
static int s8_number(unsigned bits) { return (signed char)bits; }
static int u8_number(unsigned bits) { return (unsigned char)bits; }
static float e5m2_number(unsigned bits) { return half_bits_to_float((unsigned short)(bits << 8)); }
static float e4m3_number(unsigned bits) {
    if ((bits & 0x7f) == 0x7f) return __uint_as_float(0x7fffffffu);
    return 256.0f * half_bits_to_float((unsigned short)((bits & 0x80) << 8 | (bits & 0x7f) << 7));
}

#ifdef HOST_SIZE
// One instruction: rows in halves of 8 as there are pairs of sums, 16 bytes of k for each word of N.
template <auto OF_M, auto OF_N, typename Number>
static void products_of_words(std::vector<Number*> sums, std::vector<unsigned> m, std::vector<unsigned> n) {
    static unsigned of_m[1024][4], of_n[1024][2];
    unsigned me = threadIdx.x, warp = me / 32 * 32, g = me % 32 / 4, t = me % 4, halves = (unsigned)sums.size() / 2;
    if (m.size() != halves * n.size()) fprintf(stderr, "words of M and N do not match\n"), abort();
    memcpy(of_m[me], m.data(), 4 * m.size());
    memcpy(of_n[me], n.data(), 4 * n.size());
    take_turns();
    const unsigned mask = HOST_SIZE == 4 ? ~0u : (1u << HOST_SIZE % 4 * 8) - 1;
    for (unsigned e = 0; e < sums.size(); ++e)
        for (unsigned w = 0; w < n.size(); ++w)
            for (unsigned k = 0; k < 16; k += HOST_SIZE) {
                unsigned row = of_m[warp + g * 4 + k / 4][e / 2 + w * halves] >> k % 4 * 8 & mask;
                unsigned column = of_n[warp + (2 * t + e % 2) * 4 + k / 4][w] >> k % 4 * 8 & mask;
                *sums[e] += OF_M(row) * OF_N(column);
            }
    take_turns();
}

// ldmatrix: lane 8 q + r holds the address of line r of matrix q.
template <bool TRANSPOSED>
static void read_matrices(unsigned at, unsigned& a, unsigned& b, unsigned& c, unsigned& d) {
    unsigned *made[4] = {&a, &b, &c, &d}, lane = threadIdx.x % 32;
    if (at % 16) fprintf(stderr, "ldmatrix of a line on no 16 bytes\n"), abort();
    for (int q = 0; q < 4; ++q) {
        unsigned one = __shfl_sync(~0u, at, q * 8 + (TRANSPOSED ? lane % 4 * 2 : lane / 4));
        unsigned two = __shfl_sync(~0u, at, q * 8 + (TRANSPOSED ? lane % 4 * 2 + 1 : lane / 4));
        unsigned first = TRANSPOSED ? lane / 4 : lane % 4 * 2, second = TRANSPOSED ? first : first + 1;
        auto* low = reinterpret_cast<const unsigned short*>(memory + one);
        auto* high = reinterpret_cast<const unsigned short*>(memory + two);
        *made[q] = low[first] | (unsigned)high[second] << 16;
    }
}

template <typename T> static void read_word(unsigned at, T& word) { word = *on_a_boundary<T>(memory + at); }

#if HOST_STAGED
template <bool CHECKED, int WORDS> static void load(unsigned (&to)[WORDS], const unsigned char* from, int valid) {
    if ((size_t)from % (WORDS * 4) && valid) fprintf(stderr, "a load of %d bytes on others\n", WORDS * 4), abort();
    memset(to, 0, sizeof to);
    memcpy(to, from, CHECKED ? valid : WORDS * 4);
}

template <int WORDS> static void put(unsigned to, const unsigned (&words)[WORDS]) {
    if (to % (WORDS * 4)) fprintf(stderr, "a store of %d bytes on others\n", WORDS * 4), abort();
    memcpy(memory + to, words, sizeof words);
}
#endif
#endif
