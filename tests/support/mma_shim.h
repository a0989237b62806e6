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
