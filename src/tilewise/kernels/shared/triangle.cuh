// triangle: the tile scheduler of a symmetric P: tiles on and above its diagonal.
//
// Squares of SQUARE rows and columns, a multiple of both sides of a tile: those on the diagonal are computed whole; of those above it
// each tile is `mirrored`: stored once more, transposed. Squares are numbered in bands of BAND rows of them, column by column within a
// band, for reuse in L2; a band begins with a triangle. The last squares may have tiles outside P.

#define SQUARE (BLOCK_M > BLOCK_N ? BLOCK_M : BLOCK_N)
static_assert(SQUARE % BLOCK_M == 0 && SQUARE % BLOCK_N == 0, "one side of a tile is a multiple of the other");

struct UpperTile { int top, left; bool mirrored; };

static __device__ __forceinline__ UpperTile upper_tile(int number, int m) {
    const int high = SQUARE / BLOCK_M, each = high * (SQUARE / BLOCK_N);
    int across = (m + SQUARE - 1) / SQUARE, square = number / each, within = number % each;
    int first = 0, height = min(BAND, across);
    for (int count; square >= (count = height * (across - first) - height * (height - 1) / 2);) {
        square -= count;
        first += height;
        height = min(BAND, across - first);
    }
    int column = 0, corner = height * (height + 1) / 2;
    if (square < corner)
        for (; square > column; ++column) square -= column + 1;
    else {
        column = height + (square - corner) / height;
        square = (square - corner) % height;
    }
    return {(first + square) * SQUARE + within % high * BLOCK_M, (first + column) * SQUARE + within / high * BLOCK_N,
            column > square};
}
