// batch: the members of a stack in one launch, as further tiles of the walk.
//
// Layout: with STACKED, tensor maps have two axes of the stack above their lines. An operand that is broadcast along an axis
//   has one member there, and stays at it: its `step` of that axis is 0. P's members are p_inner and p_outer elements apart.

// Groups: with BY_ROWS, tiles stand in `walk` (walk_groups.cu): rows of one group each, whose N is the member of that number.
//   With BY_K, member g of P adds up the rows of M and N from offsets[g - 1] on, to offsets[g].

struct Stack { int members, inner, m_inner, m_outer, n_inner, n_outer; long long p_inner, p_outer; const void* groups; };

// Where a tile's member lies along both axes.
struct Member { int inner, outer; };

static __device__ __forceinline__ Member member_at(int number, const Stack& stack) {
    if (!STACKED) return {0, 0};
    int outer = number / stack.inner;
    return {number - outer * stack.inner, outer};
}

// Where the rows of a group begin, as the launch's ends have it, inside the `rows` there are.
static __device__ __forceinline__ int group_start(int group, const Stack& stack, int rows) {
#if BY_K
    long long end = group ? (long long)static_cast<const Offset*>(stack.groups)[group - 1] : 0;
    return (int)max(0ll, min(end, (long long)rows));
#else
    return 0;
#endif
}

static __device__ __forceinline__ long long offset_in_p(Member member, const Stack& stack) {
    return STACKED ? member.inner * stack.p_inner + member.outer * stack.p_outer : 0;
}

static __device__ __forceinline__ Member member_of_m(Member member, const Stack& stack) {
    return {member.inner * stack.m_inner, member.outer * stack.m_outer};
}

static __device__ __forceinline__ Member member_of_n(Member member, const Stack& stack) {
    return {member.inner * stack.n_inner, member.outer * stack.n_outer};
}

static __device__ __forceinline__ void load_box(
    void* to, const TensorMap* map, Barrier* barrier, int x, int y, Member of)
{
    if (STACKED)
        copy_box(to, map, barrier, x, y, of.inner, of.outer);
    else
        copy_box(to, map, barrier, x, y);
}

static __device__ __forceinline__ void multicast_box(
    void* to, const TensorMap* map, Barrier* barrier, int x, int y, Member of, unsigned short ranks)
{
    if (STACKED)
        copy_box_multicast(to, map, barrier, x, y, of.inner, of.outer, ranks);
    else
        copy_box_multicast(to, map, barrier, x, y, ranks);
}

// Groups of rows have one P, whatever their N.
static __device__ __forceinline__ void store_member_box(const TensorMap* map, const void* from, int x, int y, Member of) {
    if (STACKED)
        store_box(map, from, x, y, BY_ROWS ? 0 : of.inner, BY_ROWS ? 0 : of.outer);
    else
        store_box(map, from, x, y);
}
