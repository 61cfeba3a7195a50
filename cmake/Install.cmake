# SPDX-License-Identifier: Apache-2.0
# The install tree: programs, the core as a library with its headers, and the CMake package
# `faberio` whose target faberio::core a driver of one's own links (docs/DRIVER-CONTRACT.md).
include(CMakePackageConfigHelpers)
set(FB_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/faberio)

install(TARGETS faberio_core EXPORT faberio ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(FB_BLAKE3_FROM_SOURCE)
  install(TARGETS fb_blake3 EXPORT faberio ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
install(DIRECTORY protocol DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/faberio
  FILES_MATCHING PATTERN "*.h")
install(EXPORT faberio NAMESPACE faberio:: FILE faberio-targets.cmake
  DESTINATION ${FB_PACKAGE_DIR})
configure_package_config_file(cmake/faberio-config.cmake.in
  ${CMAKE_BINARY_DIR}/faberio-config.cmake INSTALL_DESTINATION ${FB_PACKAGE_DIR})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/faberio-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/faberio-config.cmake
  ${CMAKE_BINARY_DIR}/faberio-config-version.cmake DESTINATION ${FB_PACKAGE_DIR})

foreach(program faberio faberio-sim faberio-sim-mutants)
  if(TARGET ${program})
    install(TARGETS ${program} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  endif()
endforeach()
