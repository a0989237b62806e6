// Bitmaps and animations of "CUDA by Example": they are computed, but not shown in a window.
struct CPUBitmap {
    unsigned char* pixels; int x, y; void* dataBlock; void (*bitmapExit)(void*);
    CPUBitmap(int width, int height, void* d = nullptr) : x(width), y(height), dataBlock(d), bitmapExit(nullptr) { pixels = new unsigned char[width * height * 4]; memset(pixels, 0, width * height * 4); }
    ~CPUBitmap() { delete[] pixels; }
    unsigned char* get_ptr() const { return pixels; }
    long image_size() const { return x * y * 4; }
    void display_and_exit(void (*e)(void*) = nullptr) { if (e) e(dataBlock); }
};
struct CPUAnimBitmap {
    unsigned char* pixels; int width, height; void* dataBlock;
    CPUAnimBitmap(int w, int h, void* d = nullptr) : width(w), height(h), dataBlock(d) { pixels = new unsigned char[width * height * 4]; memset(pixels, 0, width * height * 4); }
    ~CPUAnimBitmap() { delete[] pixels; }
    unsigned char* get_ptr() const { return pixels; }
    long image_size() const { return width * height * 4; }
    template <class F, class E> void anim_and_exit(F f, E e) { for (int ticks = 1; ticks < 3; ++ticks) f(dataBlock, ticks); if (e) e(dataBlock); }
};
