# SPDX-License-Identifier: MIT
# cmake -DIMAGE=FILE -DHEADER=FILE -P bench_kernel.cmake: the image's bytes as a C array, so that rigctl needs no file.
file(READ "${IMAGE}" bytes HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
string(REGEX REPLACE "(................................................................................)" "\\1\n" bytes "${bytes}")
file(WRITE "${HEADER}" "/* Made from bench.k.c. */
#include <stdint.h>

#define BENCH_KERNEL_NAME   \"nothing\"
#define BENCH_KERNEL_PARAMS 8u

_Alignas(8) static const uint8_t bench_kernel[] = {
${bytes}
};
")
