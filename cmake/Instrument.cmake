# SPDX-License-Identifier: Apache-2.0
# What is asked of the compiler beyond warnings.

# Our assertions do not depend on NDEBUG, and neither may anything else in a shipped build.
foreach(config RELEASE RELWITHDEBINFO MINSIZEREL)
  string(REPLACE "-DNDEBUG" "" CMAKE_C_FLAGS_${config} "${CMAKE_C_FLAGS_${config}}")
endforeach()

# __FILE__ is the path from the root, so that messages and objects do not name the build machine.
add_compile_options(-fmacro-prefix-map=${CMAKE_SOURCE_DIR}/=)

# What people run where they built it. Hashes of runs do not depend on it (tests/determinism.py).
if(FB_NATIVE)
  add_compile_options(-march=native)
endif()

# What a training run saw arranges the code of the core and of the simulator: `./dev build release`
# trains once. Names of counters are relative to the build, so that one build reads another's. Code
# that the training never reached is compiled as without a profile, and code that has changed since
# is, too: each time with a warning that has no name, and the optimiser warns of paths that it copied
# and nobody takes. Warnings are the other builds' business, so a build with a profile gives none.
set(FB_PROFILE_FLAGS "")
if(FB_PROFILE_WRITE OR FB_PROFILE)
  if(NOT CMAKE_C_COMPILER_ID STREQUAL "GNU")
    message(FATAL_ERROR "FB_PROFILE and FB_PROFILE_WRITE need gcc")
  endif()
  if(FB_PROFILE_WRITE)
    set(FB_PROFILE_FLAGS -fprofile-generate=${FB_PROFILE_WRITE})
    add_link_options(-fprofile-generate)
  else()
    set(FB_PROFILE_FLAGS -fprofile-use=${FB_PROFILE} -fprofile-partial-training -fprofile-correction -w)
    add_link_options(-w)
  endif()
  list(APPEND FB_PROFILE_FLAGS -fprofile-update=single -fprofile-prefix-path=${CMAKE_BINARY_DIR})
endif()

if(FB_SANITIZE)
  set(sanitize -fsanitize=${FB_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_compile_options(${sanitize})
  add_link_options(${sanitize})
endif()

if(FB_COVERAGE)
  # By their names: what --coverage stands for cannot be taken back for one source. Threads count
  # together, or a counter ends below zero and gcovr with it.
  add_compile_options(-fprofile-arcs -ftest-coverage -fprofile-abs-path -fprofile-update=atomic)
  add_link_options(--coverage)
endif()

if(FB_FUZZ)
  if(NOT CMAKE_C_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "FB_FUZZ needs clang, which brings libFuzzer: cmake --preset fuzz")
  endif()
  # Comparisons are not traced: half of the time of a target that runs whole nodes, and there what is
  # compared are digests and numbers. The parsers of envelopes trace theirs (cmake/Fuzz.cmake).
  add_compile_options(-fsanitize=fuzzer-no-link -fno-sanitize-coverage=trace-cmp)
endif()

# Tidy and the install test look at objects as they ship: not at instrumented ones.
if(FB_SANITIZE OR FB_COVERAGE OR FB_FUZZ OR FB_PROFILE_WRITE)
  set(FB_PLAIN_OBJECTS OFF)
else()
  set(FB_PLAIN_OBJECTS ON)
endif()

# With link-time optimisation gcc's objects carry machine code as well, so that the installed
# library can be linked by any compiler and inspected by nm.
if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
  list(REMOVE_ITEM CMAKE_C_COMPILE_OPTIONS_IPO -fno-fat-lto-objects)
  list(APPEND CMAKE_C_COMPILE_OPTIONS_IPO -ffat-lto-objects)
endif()
