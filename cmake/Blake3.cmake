# SPDX-License-Identifier: Apache-2.0
# BLAKE3 from the system: libblake3 where it is packaged, else the C sources that
# Debian 12's librust-blake3-dev installs. Nothing is vendored.
if(NOT CMAKE_CROSSCOMPILING)
  find_package(PkgConfig REQUIRED)
  pkg_check_modules(BLAKE3 QUIET IMPORTED_TARGET libblake3)
endif()
if(BLAKE3_FOUND)
  set(FB_BLAKE3_FROM_SOURCE OFF)
  add_library(fb_blake3 INTERFACE)
  target_link_libraries(fb_blake3 INTERFACE PkgConfig::BLAKE3)
else()
  file(GLOB FB_BLAKE3_DIRS /usr/share/cargo/registry/blake3-*/c)
  if(NOT FB_BLAKE3_DIRS)
    message(FATAL_ERROR "BLAKE3 not found: install librust-blake3-dev (or libblake3)")
  endif()
  list(GET FB_BLAKE3_DIRS -1 FB_BLAKE3_DIR)
  set(sources ${FB_BLAKE3_DIR}/blake3.c ${FB_BLAKE3_DIR}/blake3_dispatch.c
    ${FB_BLAKE3_DIR}/blake3_portable.c)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|amd64" AND NOT FB_BLAKE3_PORTABLE)
    enable_language(ASM)
    list(APPEND sources ${FB_BLAKE3_DIR}/blake3_sse2_x86-64_unix.S
      ${FB_BLAKE3_DIR}/blake3_sse41_x86-64_unix.S ${FB_BLAKE3_DIR}/blake3_avx2_x86-64_unix.S
      ${FB_BLAKE3_DIR}/blake3_avx512_x86-64_unix.S)
  endif()
  set(FB_BLAKE3_FROM_SOURCE ON)
  add_library(fb_blake3 STATIC ${sources})
  set_target_properties(fb_blake3 PROPERTIES EXPORT_NAME blake3 OUTPUT_NAME faberio_blake3)
  target_include_directories(fb_blake3 SYSTEM PUBLIC $<BUILD_INTERFACE:${FB_BLAKE3_DIR}>)
  target_compile_options(fb_blake3 PRIVATE $<$<COMPILE_LANGUAGE:C>:-w>)
  if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|amd64" OR FB_BLAKE3_PORTABLE)
    target_compile_definitions(fb_blake3 PRIVATE BLAKE3_NO_SSE2 BLAKE3_NO_SSE41 BLAKE3_NO_AVX2
      BLAKE3_NO_AVX512 BLAKE3_USE_NEON=0)
  endif()
endif()
