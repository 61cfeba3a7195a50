# SPDX-License-Identifier: Apache-2.0
# io/ and runtime/: the driver of real nodes and the program that people run.
find_package(PkgConfig REQUIRED)
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)

file(GLOB_RECURSE FB_IO_SOURCES CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/io/*.c)
list(FILTER FB_IO_SOURCES EXCLUDE REGEX "/io/(mongo|documents)/")
if(FB_IO_SOURCES)
  pkg_check_modules(SODIUM REQUIRED IMPORTED_TARGET libsodium)
  pkg_check_modules(UV REQUIRED IMPORTED_TARGET libuv)
  pkg_check_modules(LMDB REQUIRED IMPORTED_TARGET lmdb)
  add_library(faberio_io STATIC ${FB_IO_SOURCES})
  target_link_libraries(faberio_io PUBLIC faberio_documents faberio_core PkgConfig::SODIUM PkgConfig::UV
    PkgConfig::LMDB Threads::Threads ${CMAKE_DL_LIBS})
  target_compile_definitions(faberio_io PRIVATE
    FB_MODULE_DIRECTORY="${CMAKE_INSTALL_FULL_LIBDIR}/faberio")
  fb_use_system(faberio_io)
endif()

# The document store in MongoDB: a module that a node loads when it is told to use it, so that a node
# without it carries nothing of the driver. Left out where the driver is not installed.
file(GLOB FB_MONGO_SOURCES CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/io/mongo/*.c)
pkg_check_modules(MONGOC IMPORTED_TARGET libmongoc-1.0)
pkg_check_modules(MONGO_JANSSON IMPORTED_TARGET jansson)
if(FB_MONGO_SOURCES AND MONGOC_FOUND AND MONGO_JANSSON_FOUND)
  set(FB_MONGO_MODULE ${CMAKE_SOURCE_DIR}/io/mongo/module.c)
  list(REMOVE_ITEM FB_MONGO_SOURCES ${FB_MONGO_MODULE})
  # A library, so that unit tests reach what the module is made of.
  add_library(faberio_mongo_parts STATIC ${FB_MONGO_SOURCES})
  set_target_properties(faberio_mongo_parts PROPERTIES POSITION_INDEPENDENT_CODE ON
    C_VISIBILITY_PRESET hidden)
  target_link_libraries(faberio_mongo_parts PUBLIC faberio_core PkgConfig::MONGOC
    PkgConfig::MONGO_JANSSON Threads::Threads)
  fb_use_system(faberio_mongo_parts)
  add_library(faberio_mongo MODULE ${FB_MONGO_MODULE} ${CMAKE_SOURCE_DIR}/io/assert.c)
  set_target_properties(faberio_mongo PROPERTIES PREFIX "" OUTPUT_NAME faberio-mongo
    C_VISIBILITY_PRESET hidden)
  target_link_libraries(faberio_mongo PRIVATE faberio_mongo_parts)
  fb_use_system(faberio_mongo)
endif()

file(GLOB_RECURSE FB_RUNTIME_SOURCES CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/runtime/*.c)
set(FB_RUNTIME_MAIN ${CMAKE_SOURCE_DIR}/runtime/main.c)
list(REMOVE_ITEM FB_RUNTIME_SOURCES ${FB_RUNTIME_MAIN})
if(FB_RUNTIME_SOURCES AND FB_IO_SOURCES)
  pkg_check_modules(MICROHTTPD REQUIRED IMPORTED_TARGET libmicrohttpd)
  pkg_check_modules(INIH REQUIRED IMPORTED_TARGET inih)
  pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson)
  # A library, so that unit tests reach what the program is made of.
  add_library(faberio_runtime STATIC ${FB_RUNTIME_SOURCES})
  target_link_libraries(faberio_runtime PUBLIC faberio_io PkgConfig::MICROHTTPD PkgConfig::INIH
    PkgConfig::JANSSON)
  if(TARGET faberio_sim)
    target_link_libraries(faberio_runtime PUBLIC faberio_sim)
  endif()
  target_compile_definitions(faberio_runtime PRIVATE FB_VERSION="${PROJECT_VERSION}")
  fb_use_system(faberio_runtime)

  if(EXISTS ${FB_RUNTIME_MAIN})
    add_executable(faberio ${FB_RUNTIME_MAIN})
    fb_program(faberio faberio_runtime)
    target_compile_definitions(faberio PRIVATE FB_VERSION="${PROJECT_VERSION}")
  endif()
endif()
