# SPDX-License-Identifier: Apache-2.0
# One set of warnings for everything we write, tests included.
add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Wmissing-prototypes
  -Wpointer-arith -Wcast-qual -Wwrite-strings -Wundef -Wvla -Wimplicit-fallthrough)
if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
  # gcc's optimiser guesses: snprintf truncates on purpose, and members of one struct do not overlap.
  add_compile_options(-Wno-format-truncation -Wno-restrict)
endif()
if(FB_WERROR)
  add_compile_options(-Werror)
endif()
