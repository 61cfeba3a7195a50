# SPDX-License-Identifier: Apache-2.0
# protocol/: the objects that ship, and the same sources once more with the planted bugs in them.
file(GLOB_RECURSE FB_CORE_SOURCES CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/protocol/*.c)

# A cross compiler does not look where the build machine's headers are, and of those it needs this
# one alone.
if(CMAKE_CROSSCOMPILING)
  file(COPY /usr/include/xxhash.h DESTINATION ${CMAKE_BINARY_DIR}/include)
  include_directories(SYSTEM ${CMAKE_BINARY_DIR}/include)
endif()

# gcc at -O0 keeps xxHash's unused allocating functions, and with them imports that the core may not
# have (tests/tidy).
if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
  set_source_files_properties(${CMAKE_SOURCE_DIR}/protocol/base/hash.c PROPERTIES
    COMPILE_OPTIONS $<$<CONFIG:Debug>:-O1>)
endif()

# The core calls BLAKE3's compression function itself where it can be linked.
if(FB_BLAKE3_FROM_SOURCE)
  set_property(SOURCE ${CMAKE_SOURCE_DIR}/protocol/base/hash.c APPEND PROPERTY
    COMPILE_DEFINITIONS FB_BLAKE3_FROM_SOURCE)
endif()

add_library(faberio_core STATIC ${FB_CORE_SOURCES})
add_library(faberio::core ALIAS faberio_core)
set_target_properties(faberio_core PROPERTIES EXPORT_NAME core)
target_include_directories(faberio_core PUBLIC
  $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}>
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/faberio>)
target_link_libraries(faberio_core PRIVATE fb_blake3)
target_compile_options(faberio_core PRIVATE ${FB_PROFILE_FLAGS})

file(GLOB FB_MUTANT_IDS CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/sim/mutant_ids.h)
if(FB_MUTANT_IDS)
  add_library(faberio_core_mutants STATIC ${FB_CORE_SOURCES})
  target_compile_definitions(faberio_core_mutants PUBLIC FB_PLANTED_BUGS)
  target_include_directories(faberio_core_mutants PUBLIC ${CMAKE_SOURCE_DIR})
  target_link_libraries(faberio_core_mutants PRIVATE fb_blake3)
endif()

# What is decided for a document store (docs/ARCHITECTURE.md): as pure as the core but for its memory,
# and linked by both drivers.
file(GLOB FB_DOCUMENTS_SOURCES CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/io/documents/*.c)
if(FB_DOCUMENTS_SOURCES)
  add_library(faberio_documents STATIC ${FB_DOCUMENTS_SOURCES})
  target_link_libraries(faberio_documents PUBLIC faberio_core)
  fb_use_system(faberio_documents)
endif()
