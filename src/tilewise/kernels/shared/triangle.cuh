// triangle: the tile scheduler of a symmetric P: tiles on and above its diagonal.
//
// Squares of SQUARE rows and columns, a multiple of both sides of a tile: those on the diagonal are computed whole; of those above it
// each tile is `mirrored`: stored once more, transposed. Squares are numbered in bands of GROUP rows of tiles, column by column within a
// band, for reuse in L2; a band begins with a triangle. The last squares may have tiles outside P.
// A text defines SQUARE, and the sides of its (cluster's) tile, UPPER_ROWS and UPPER_COLS.

#define BAND (GROUP * UPPER_ROWS > SQUARE ? GROUP * UPPER_ROWS / SQUARE : 1)
static_assert(SQUARE % UPPER_ROWS == 0 && SQUARE % UPPER_COLS == 0, "squares are whole tiles");

struct UpperTile { int top, left; bool mirrored; };

static __device__ __forceinline__ int upper_tiles(int m) {
    int across = (m + SQUARE - 1) / SQUARE;
    return across * (across + 1) / 2 * (SQUARE / UPPER_ROWS) * (SQUARE / UPPER_COLS);
}

static __device__ __forceinline__ UpperTile upper_tile(int number, int m) {
    const int high = SQUARE / UPPER_ROWS, each = high * (SQUARE / UPPER_COLS);
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
    return {(first + square) * SQUARE + within % high * UPPER_ROWS, (first + column) * SQUARE + within / high * UPPER_COLS,
            column > square};
}
