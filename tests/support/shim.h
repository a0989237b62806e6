// The course's CUDA C behind a C++ compiler.
#include "fibers.h"
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>

#define __global__ static
#define __device__ static
#define __shared__ static

static inline int min(int a, int b) { return a < b ? a : b; }
static inline int max(int a, int b) { return a > b ? a : b; }

// C leaves the order of -0 and +0 open; the card puts -0 below.
template <typename T> static T least(T a, T b) { return a == 0 && b == 0 ? -(-a - b) : a != a ? b : b != b ? a : a < b ? a : b; }
template <typename T> static T most(T a, T b) { return a == 0 && b == 0 ? a + b : a != a ? b : b != b ? a : a > b ? a : b; }
#define fminf least<float>
#define fmaxf most<float>
#define fmin least<double>
#define fmax most<double>
