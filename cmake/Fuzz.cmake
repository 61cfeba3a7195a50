# SPDX-License-Identifier: Apache-2.0
# fuzz/: with FB_FUZZ each target is a libFuzzer program. Otherwise it is linked with the replay
# driver, and a test runs it over its corpus, fuzz/corpus/NAME/ for fuzz/fuzz_NAME.c.
file(GLOB FB_FUZZ_SOURCES CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/fuzz/fuzz_*.c)
file(GLOB FB_FUZZ_PROTOS CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/fuzz/*.proto)
file(GLOB FB_FUZZ_SUPPORT CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/fuzz/*.c)
# The scanner as machines without SSE2 have it.
list(APPEND FB_FUZZ_SUPPORT ${CMAKE_SOURCE_DIR}/tests/unit/portable_scan.c)
file(GLOB FB_FUZZ_REPLAY CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/fuzz/replay.c)
list(REMOVE_ITEM FB_FUZZ_SUPPORT ${FB_FUZZ_REPLAY} ${FB_FUZZ_SOURCES})

# These drive the daemon's own readers, or the simulator's.
if(NOT FB_DAEMON)
  list(FILTER FB_FUZZ_SOURCES EXCLUDE REGEX
    "fuzz_(adapter|context|import|request_json|settings|words)\\.c$")
endif()
if(NOT TARGET faberio_mongo_parts)
  list(FILTER FB_FUZZ_SOURCES EXCLUDE REGEX "fuzz_document\\.c$")
endif()

set(FB_ALL_PARTS)
foreach(part faberio_runtime faberio_sim faberio_io faberio_core)
  if(TARGET ${part})
    list(APPEND FB_ALL_PARTS ${part})
  endif()
endforeach()
list(APPEND FB_ALL_PARTS fb_blake3)

if(FB_FUZZ)
  # Parsers of formats with words and numbers to be guessed: comparisons are traced here.
  set(parsers)
  foreach(folder envelope space database identity)
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/protocol/${folder}/*.c)
    list(APPEND parsers ${sources})
  endforeach()
  list(FILTER parsers INCLUDE REGEX "envelope|statement|invite|batch|change|record|tree|vector")
  set_source_files_properties(${parsers} PROPERTIES COMPILE_OPTIONS
    -fsanitize-coverage=trace-cmp)
endif()

# protobuf-c is the reference of the differential targets, never part of the product's codec.
set(FB_FUZZ_LIBS)
if(FB_FUZZ_PROTOS)
  find_package(PkgConfig REQUIRED)
  pkg_check_modules(PROTOBUFC REQUIRED IMPORTED_TARGET libprotobuf-c)
  find_program(FB_PROTOC_C protoc-c REQUIRED)
  set(generated)
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/proto)
  foreach(proto ${FB_FUZZ_PROTOS})
    get_filename_component(name ${proto} NAME_WE)
    set(out ${CMAKE_BINARY_DIR}/proto/${name}.pb-c)
    add_custom_command(OUTPUT ${out}.c ${out}.h
      COMMAND ${FB_PROTOC_C} --c_out=${CMAKE_BINARY_DIR}/proto -I${CMAKE_SOURCE_DIR}/fuzz ${proto}
      DEPENDS ${proto} VERBATIM)
    list(APPEND generated ${out}.c ${out}.h)
  endforeach()
  add_library(fb_fuzz_proto STATIC ${generated})
  target_compile_options(fb_fuzz_proto PRIVATE -w)
  target_include_directories(fb_fuzz_proto SYSTEM PUBLIC ${CMAKE_BINARY_DIR}/proto)
  target_link_libraries(fb_fuzz_proto PUBLIC PkgConfig::PROTOBUFC)
  list(APPEND FB_FUZZ_LIBS fb_fuzz_proto)
endif()

if(FB_COVERAGE)
  # What it includes is counted where it stands.
  set_source_files_properties(${CMAKE_SOURCE_DIR}/tests/unit/portable_scan.c PROPERTIES
    COMPILE_OPTIONS "-fno-profile-arcs;-fno-test-coverage")
endif()
if(FB_FUZZ_SUPPORT)
  add_library(fb_fuzz_support STATIC ${FB_FUZZ_SUPPORT})
  fb_use_system(fb_fuzz_support)
  target_link_libraries(fb_fuzz_support PUBLIC ${FB_ALL_PARTS})
  list(APPEND FB_FUZZ_LIBS fb_fuzz_support)
endif()

foreach(source ${FB_FUZZ_SOURCES})
  get_filename_component(name ${source} NAME_WE)
  string(REPLACE "fuzz_" "" short ${name})
  set(handler)
  if(NOT TARGET faberio_sim AND NOT TARGET faberio_io)
    set(handler ${CMAKE_SOURCE_DIR}/tests/unit/assert_failed.c)
  endif()
  if(FB_FUZZ)
    add_executable(${name} ${source} ${handler})
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  elseif(FB_FUZZ_REPLAY)
    add_executable(${name} ${source} ${FB_FUZZ_REPLAY} ${handler})
    add_test(NAME corpus_${short} COMMAND ${name} ${CMAKE_SOURCE_DIR}/fuzz/corpus/${short})
    set_tests_properties(corpus_${short} PROPERTIES LABELS fuzz TIMEOUT 300)
  else()
    continue()
  endif()
  fb_test_program(${name} ${FB_FUZZ_LIBS} ${FB_ALL_PARTS})
  if(short STREQUAL "document")
    target_link_libraries(${name} PRIVATE faberio_mongo_parts)
  endif()
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz)
endforeach()
