// The other parts of book.h of "CUDA by Example".
// One channel of the colour of this hue, in degrees, between the least and the greatest channel.
__device__ unsigned char value(float least, float greatest, int hue) {
    hue = (hue % 360 + 360) % 360;
    float part = hue < 60 ? hue / 60.0f : hue < 180 ? 1 : hue < 240 ? (240 - hue) / 60.0f : 0;
    return (unsigned char)(255 * (least + (greatest - least) * part));
}
__device__ uchar4 __colour_of(float lightness) {
    int hue = (180 + (int)(360 * lightness)) % 360;
    float greatest = lightness <= 0.5f ? 2 * lightness : 1, least = 2 * lightness - greatest;
    return make_uchar4(value(least, greatest, hue + 120), value(least, greatest, hue), value(least, greatest, hue - 120), 255);
}
__global__ void float_to_color(uchar4* to, const float* from) {
    int at = blockIdx.x * blockDim.x + threadIdx.x + (blockIdx.y * blockDim.y + threadIdx.y) * blockDim.x * gridDim.x;
    to[at] = __colour_of(from[at]);
}
__global__ void float_to_color(unsigned char* to, const float* from) {
    int at = blockIdx.x * blockDim.x + threadIdx.x + (blockIdx.y * blockDim.y + threadIdx.y) * blockDim.x * gridDim.x;
    ((uchar4*)to)[at] = __colour_of(from[at]);
}
template <class T> void swap(T& a, T& b) { T t = a; a = b; b = t; }
void* big_random_block(int size) { unsigned char* data = (unsigned char*)malloc(size); for (int i = 0; i < size; ++i) data[i] = rand(); return data; }
int* big_random_block_int(int size) { int* data = (int*)malloc(size * sizeof(int)); for (int i = 0; i < size; ++i) data[i] = rand(); return data; }
