// stb_image and stb_image_write as programs of courses use them: PNG, PNM and BMP are read, PNG and BMP are written.
#define STBI_default 0
#define STBI_grey 1
#define STBI_grey_alpha 2
#define STBI_rgb 3
#define STBI_rgb_alpha 4
typedef unsigned char stbi_uc;
int __image_open(const char* name, int* w, int* h, int* n);
void __image_take(unsigned char* to, int n, int flip);
int __image_write(const char* name, int w, int h, int n, const void* data, int stride, int kind, int flip);
const char* __image_reason();
int __flip_on_load = 0, __flip_on_write = 0;
void stbi_set_flip_vertically_on_load(int flip) { __flip_on_load = flip; }
void stbi_flip_vertically_on_write(int flip) { __flip_on_write = flip; }
const char* stbi_failure_reason() { return __image_reason(); }
int stbi_info(const char* name, int* w, int* h, int* n) { return __image_open(name, w, h, n); }
stbi_uc* stbi_load(const char* name, int* x, int* y, int* n, int want) {
    int w, h, c;
    if (!__image_open(name, &w, &h, &c)) return 0;
    int k = want ? want : c;
    stbi_uc* p = (stbi_uc*)malloc((size_t)w * h * k);
    __image_take(p, k, __flip_on_load);
    *x = w; *y = h;
    if (n) *n = c;
    return p;
}
void stbi_image_free(void* p) { free(p); }
int stbi_write_png(const char* name, int w, int h, int n, const void* data, int stride) { return __image_write(name, w, h, n, data, stride, 0, __flip_on_write); }
int stbi_write_bmp(const char* name, int w, int h, int n, const void* data) { return __image_write(name, w, h, n, data, 0, 1, __flip_on_write); }
int stbi_write_jpg(const char* name, int w, int h, int n, const void* data, int quality) { return __image_write(name, w, h, n, data, 0, 2, __flip_on_write); }
int stbi_write_tga(const char* name, int w, int h, int n, const void* data) { return __image_write(name, w, h, n, data, 0, 2, __flip_on_write); }
