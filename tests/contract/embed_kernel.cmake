# SPDX-License-Identifier: MIT
# cmake -DIMAGE=FILE -DHEADER=FILE -P embed_kernel.cmake: the image's bytes as a C array, so that rig-conform needs no
# file.
file(READ "${IMAGE}" bytes HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
string(REGEX REPLACE "(................................................................................)" "\\1\n" bytes "${bytes}")
file(WRITE "${HEADER}" "/* Made from conform.k.c. */
#include <stdint.h>

#define CONFORM_KERNEL_ARCH \"rvx1\"

_Alignas(8) static const uint8_t conform_kernel[] = {
${bytes}
};
")
