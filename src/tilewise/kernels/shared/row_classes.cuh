// row_classes: which rows of M, and of P, a tile takes where rows come in classes.
//
// A kernel defines CLASSES. Every CLASSES-th row of M starts equally far from a 16-byte boundary: such rows are a class, and a
// tile takes rows of one. Classes lie one after the other in the order of tiles.

struct RowClasses { int longer, few, tiles_few, tiles_more; };  // `longer` classes have a row more than the `few` of others

// Of m rows, in tiles that are `tall`.
static __device__ __forceinline__ RowClasses row_classes(int m, int tall) {
    int longer = m % CLASSES, few = m / CLASSES;
    return {longer, few, (few + tall - 1) / tall, (few + tall) / tall};
}

static __device__ __forceinline__ int tiles_of(const RowClasses& classes) {
    return classes.longer * classes.tiles_more + (CLASSES - classes.longer) * classes.tiles_few;
}

// The class of a row of tiles, `at`, and how many rows it has; `tile_m` is then counted within it.
static __device__ __forceinline__ void find_class(const RowClasses& classes, int m, int& tile_m, int& at, int& rows) {
    if (CLASSES == 1) {
        at = 0;
        rows = m;
    } else if (tile_m < classes.longer * classes.tiles_more) {
        at = tile_m / classes.tiles_more;
        rows = classes.few + 1;
        tile_m -= at * classes.tiles_more;
    } else {
        tile_m -= classes.longer * classes.tiles_more;
        at = classes.longer + tile_m / classes.tiles_few;
        rows = classes.few;
        tile_m %= classes.tiles_few;
    }
}
