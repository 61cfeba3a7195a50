# SPDX-License-Identifier: Apache-2.0
# cmake -DFROM=FILE -DTO=FILE.c -DNAME=IDENTIFIER -P Embed.cmake: the bytes of a file as an array of
# C, with its length next to it.
file(READ ${FROM} bytes HEX)
string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
file(WRITE ${TO} "/* Made of ${NAME} by cmake/Embed.cmake. */
#include \"sim/view/page.h\"

const unsigned char ${NAME}[] = {
${bytes}};
const size_t ${NAME}_len = sizeof ${NAME};
")
