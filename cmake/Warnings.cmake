# SPDX-License-Identifier: Apache-2.0
# One set of warnings for everything we write, tests included.
add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Wmissing-prototypes
  -Wpointer-arith -Wcast-qual -Wwrite-strings -Wundef -Wvla -Wimplicit-fallthrough)
if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
  # gcc's optimiser guesses: snprintf truncates on purpose, members of one struct do not overlap, and
  # a cursor that failed writes nothing.
  add_compile_options(-Wno-format-truncation -Wno-restrict -Wno-stringop-overflow)
endif()
if(FB_WERROR)
  add_compile_options(-Werror)
endif()
