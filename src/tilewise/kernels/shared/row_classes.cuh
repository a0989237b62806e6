// row_classes: the rows of M and P of a tile, with rows by alignment class.
//
// A kernel defines CLASSES. Every CLASSES-th row of M has the same misalignment from 16 bytes: these rows are a class, and all rows of
// a tile are of one class. Tiles are numbered class by class.

struct RowClasses { int longer, few, tiles_few, tiles_more; };  // `longer` classes have few + 1 rows, the others `few`

// Of m rows, in tiles of `tall` rows.
static __device__ __forceinline__ RowClasses row_classes(int m, int tall) {
    int longer = m % CLASSES, few = m / CLASSES;
    return {longer, few, (few + tall - 1) / tall, (few + tall) / tall};
}

static __device__ __forceinline__ int tiles_of(const RowClasses& classes) {
    return classes.longer * classes.tiles_more + (CLASSES - classes.longer) * classes.tiles_few;
}

// The class `at` of tile row `tile_m`, and its number of rows; `tile_m` becomes relative to the class.
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
