# SPDX-License-Identifier: Apache-2.0
# Helpers for the programs and for the code around the core.

# POSIX and Linux interfaces, for everything but protocol/.
function(fb_use_system target)
  target_compile_definitions(${target} PRIVATE _GNU_SOURCE=)
endfunction()

# A program links every part that exists. The core imports fb_assert_failed and each of io/, sim/
# and tests/unit has a definition alone in a file of its own; asking for the symbol first makes the
# linker take exactly one of them, the first in link order.
function(fb_program target)
  fb_use_system(${target})
  target_link_libraries(${target} PRIVATE ${ARGN})
  target_link_options(${target} PRIVATE -Wl,-u,fb_assert_failed)
endfunction()

# A program of tests: never optimised at link time, which would take longer than all else together.
function(fb_test_program target)
  fb_program(${target} ${ARGN})
  set_target_properties(${target} PROPERTIES INTERPROCEDURAL_OPTIMIZATION OFF)
  if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
    target_link_options(${target} PRIVATE -fno-lto)
  endif()
endfunction()
