"""Known headers, and the file of `headers/` that replaces each ('' for none)."""

from __future__ import annotations

ALWAYS = ("c_library.h", "c_rare.h", "cuda_runtime.h", "device.h", "textures.h")

C = "c_library.h"
CUDA = "cuda_runtime.h"
STREAMS = "streams.h"
VECTOR = "vector.h"
STRING = "cpp_string.h"
ALGORITHM = "algorithm.h"
RANDOM = "random.h"
CHRONO = "chrono.h"
MEMORY = "cpp_memory.h"
CONTAINERS = "containers.h"
THREADS = "threads.h"
THRUST = "thrust.h"
COMPLEX = "cpp_complex.h"
OPENCV = "opencv.h"
HALF = "half.h"
PTX = "ptx.h"  # loaded for programs with inline assembly
KNOWN: dict[str, str] = {
    **dict.fromkeys(
        ("stdio.h", "stdlib.h", "string.h", "math.h", "time.h", "assert.h", "limits.h", "float.h", "stdint.h",
         "stdbool.h", "stddef.h", "ctype.h", "sys/time.h", "errno.h", "malloc.h", "inttypes.h",
         "cstdio", "cstdlib", "cstring", "cmath", "ctime", "cassert", "climits", "cfloat", "cstdint", "cstddef",
         "cctype", "cinttypes", "sys/types.h", "memory.h", "strings.h", "signal.h", "csignal",
         "cerrno", "conio.h", "windows.h", "Windows.h", "omp.h", "stdarg.h", "cstdarg", "sys/resource.h",
         "libgen.h", "sys/utime.h", "utime.h", "io.h", "process.h", "sys/timeb.h",
         "sys/times.h", "corecrt_math.h", "corecrt.h", "wchar.h", "complex.h", "sys/param.h", "sys/ioctl.h",
         "sched.h", "sys/syscall.h", "sys/mman.h", "sys/wait.h", "sys/sysinfo.h", "linux/limits.h",
         "locale.h", "clocale",
         "cstdbool", "iso646.h", "ciso646", "fenv.h", "cfenv", "tgmath.h",
         "xmmintrin.h", "immintrin.h", "x86intrin.h", "fcntl.h"), C),
    **dict.fromkeys(("getopt.h", "unistd.h"), "getopt.h"),
    **dict.fromkeys(("dirent.h", "sys/stat.h", "direct.h"), "dirent.h"),
    **dict.fromkeys(
        ("cuda.h", "cuda_runtime.h", "cuda_runtime_api.h", "device_launch_parameters.h", "device_functions.h",
         "cuda_profiler_api.h", "vector_types.h", "vector_functions.h", "driver_types.h",
         "math_constants.h", "sm_20_atomic_functions.h", "device_atomic_functions.h", "cuda_device_runtime_api.h",
         "cooperative_groups.h", "host_defines.h", "math_functions.h", "builtin_types.h", "device_types.h",
         "texture_fetch_functions.h", "sm_60_atomic_functions.h", "crt/device_functions.h",
         "cuda_texture_types.h", "channel_descriptor.h", "cuda_runtime_api", "cuda_gl_interop.h", "common_functions.h",
         "__clang_cuda_builtin_vars.h", "__clang_cuda_intrinsics.h",
         "crt/host_config.h", "crt/host_defines.h", "crt/math_functions.h",
         "cooperative_groups/reduce.h", "cuda/barrier", "cuda/pipeline",
         "cuda_pipeline.h", "cuda_pipeline_primitives.h", "cuda_occupancy.h", "cuda_surface_types.h", "surface_types.h",
         "texture_types.h", "surface_functions.h", "sm_30_intrinsics.h", "sm_35_intrinsics.h", "sm_32_intrinsics.h",
         "nvToolsExt.h", "nvtx3/nvToolsExt.h"), CUDA),
    **dict.fromkeys(("iostream", "iomanip", "ostream", "istream", "sstream", "fstream", "ios", "iosfwd",
                     "string_view"), STREAMS),
    **dict.fromkeys(("vector", "array", "initializer_list", "iterator", "bitset", "valarray", "span"), VECTOR),
    **dict.fromkeys(("deque", "list", "set", "map", "unordered_map", "queue", "stack", "unordered_set", "tuple",
                     "optional", "functional"), CONTAINERS),
    **dict.fromkeys(("string", "cwchar", "stdexcept", "exception", "system_error", "regex",
                     "format"), STRING),
    **dict.fromkeys(("algorithm", "numeric", "utility", "limits", "type_traits", "cuchar", "typeinfo",
                     "numbers", "new", "concepts", "ratio", "bit", "execution"), ALGORITHM),
    **dict.fromkeys(("random",), RANDOM),
    "complex": COMPLEX,
    "variant": "variant.h",
    "chrono": CHRONO, "filesystem": "filesystem.h", "experimental/filesystem": "filesystem.h",
    **dict.fromkeys(("thread", "mutex", "atomic", "condition_variable", "future", "shared_mutex"), THREADS),
    **{f"thrust/{name}.h": THRUST for name in (
        "device_vector", "host_vector", "device_ptr", "copy", "fill", "sort", "reduce", "scan", "transform", "sequence",
        "iterator/counting_iterator", "functional", "generate", "extrema", "count", "inner_product",
        "transform_reduce", "for_each", "reverse",
        "iterator/transform_iterator", "iterator/zip_iterator", "iterator/constant_iterator", "gather", "scatter",
        "unique", "remove", "replace", "tabulate", "find", "logical", "binary_search", "merge", "random", "tuple",
        "adjacent_difference", "iterator/permutation_iterator", "memory", "partition", "system/omp/execution_policy",
        "device_reference", "set_operations", "mismatch", "complex", "version", "uninitialized_fill", "host_vector",
        "execution_policy", "equal", "swap", "pair", "device_malloc", "device_free", "system/cuda/execution_policy")},
    **dict.fromkeys(("memory",), MEMORY),
    "helper_cuda.h": "helper_cuda.h", "helper_functions.h": "helper_cuda.h", "helper_timer.h": "helper_cuda.h",
    "helper_string.h": "helper_cuda.h", "cutil.h": "cutil.h", "cutil_inline.h": "cutil.h",
    "shrUtils.h": "helper_cuda.h", "helper_image.h": "helper_cuda.h", "exception.h": "helper_cuda.h",
    "cuda_bf16.h": "bfloat16.h", "cuda_bf16.hpp": "bfloat16.h",
    "cpu_bitmap.h": "by_example.h", "cpu_anim.h": "by_example.h",
    "cuda_fp16.h": HALF, "cuda_fp16.hpp": HALF, "helper_math.h": "helper_math.h",
    "cutil_math.h": "helper_math.h",
    **dict.fromkeys(("gputimer.h", "timer.h"), "course_timers.h"),
    **dict.fromkeys(("GL/glut.h", "GL/freeglut.h", "GL/gl.h", "GL/glu.h", "GL/glew.h", "GLUT/glut.h", "OpenGL/gl.h",
                     "OpenGL/glu.h", "GL/glext.h", "GL/freeglut_ext.h"), "glut.h"),
    "pthread.h": "pthread.h", "mma.h": "mma.h", "stb_image.h": "stb_image.h", "stb_image_write.h": "stb_image.h",
    "wb.h": "wb.h", "book.h": "book.h",
    "cublas_v2.h": "cublas.h", "cublas.h": "cublas.h", "cublas_api.h": "cublas.h",
    "library_types.h": "cublas.h",
    "curand.h": "curand.h", "curand_kernel.h": "curand.h",
    "bits/stdc++.h": "everything.h",
    "cuComplex.h": "cu_complex.h", "cufft.h": "cufft.h", "cufftXt.h": "cufft.h",
    **dict.fromkeys(("cub/cub.cuh", "cub/block/block_reduce.cuh", "cub/device/device_reduce.cuh", "cub/util_type.cuh",
                     "cub/device/device_scan.cuh", "cub/device/device_radix_sort.cuh", "cub/block/block_scan.cuh",
                     "cub/warp/warp_reduce.cuh"), "cub.h"),
    **dict.fromkeys(("opencv2/opencv.hpp", "opencv2/core/core.hpp", "opencv2/core.hpp", "opencv2/highgui/highgui.hpp",
                     "opencv2/highgui.hpp", "opencv2/imgproc/imgproc.hpp", "opencv2/imgproc.hpp",
                     "opencv2/imgcodecs.hpp",
                     "opencv2/imgcodecs/imgcodecs.hpp", "opencv2/core/utility.hpp", "opencv2/core/types.hpp",
                     "opencv2/opencv_modules.hpp", "opencv2/core/mat.hpp", "opencv/cv.h", "cv.h", "highgui.h"), OPENCV),
}  # fmt: skip
# names from headers that programs often do not include, because on most systems another header includes them
IMPLIED: dict[str, tuple[str, tuple[str, ...]]] = {
    "iostream": (STREAMS, ("cout", "cerr", "cin", "ostream", "endl")),
    "vector": (VECTOR, ("vector", "array")),
    "string": (STRING, ("string", "to_string", "stoi", "runtime_error", "invalid_argument")),
    "algorithm": (ALGORITHM, ("sort", "fill", "generate", "transform", "accumulate", "iota", "numeric_limits",
                              "max_element",
                              "min_element", "min", "max", "swap", "move", "forward", "is_same", "abs", "copy")),
    "random": (RANDOM, ("mt19937", "random_device", "uniform_real_distribution", "uniform_int_distribution",
                        "normal_distribution", "default_random_engine")),
    "chrono": (CHRONO, ("chrono",)),
    "memory": (MEMORY, ("unique_ptr", "shared_ptr", "make_unique", "make_shared")),
    "functional": (CONTAINERS, ("function", "map", "set", "tuple", "queue", "unordered_map", "make_tuple", "list")),
}  # fmt: skip
# folders of libraries, all of whose headers map to one
FOLDERS = {
    "cuda/std/": "algorithm",
    "thrust/": "thrust/device_vector.h",
    "cub/": "cub/cub.cuh",
    "opencv2/": "opencv2/opencv.hpp",
}
REPLACED = ("stb_image.h", "stb_image_write.h")  # preferred to a project's file, which is long
# of courses and samples: a project's own copy is searched in its usual folders, too
COPIED = ("helper_cuda.h", "cutil.h", "helper_math.h", "course_timers.h", "book.h", "by_example.h")
NEEDS: dict[str, tuple[str, ...]] = {
    "book.h": ("helper_cuda.h",), "cutil.h": ("helper_cuda.h",), "cublas.h": (HALF,), COMPLEX: (ALGORITHM,),
    "cufft.h": ("cu_complex.h",), "cub.h": (THRUST,), OPENCV: (STRING, ALGORITHM, "stb_image.h"), "mma.h": (HALF,),
    PTX: (HALF,),
    STREAMS: (STRING,), "filesystem.h": (STREAMS, VECTOR, "dirent.h"),
    "variant.h": (STRING, ALGORITHM), STRING: (ALGORITHM,), VECTOR: (ALGORITHM,),
    RANDOM: (ALGORITHM,), CHRONO: (ALGORITHM,), MEMORY: (ALGORITHM,), CONTAINERS: (VECTOR,), THREADS: (CHRONO,),
    THRUST: (VECTOR,), "wb.h": (STREAMS,),
    "everything.h": (STREAMS, VECTOR, STRING, ALGORITHM, RANDOM, CHRONO, MEMORY, CONTAINERS, THREADS),
}  # fmt: skip
