# SPDX-License-Identifier: Apache-2.0
# The install tree: programs, the core as a library with its headers, and the CMake package
# `faberio` whose target faberio::core a driver of one's own links (docs/DRIVER-CONTRACT.md).
include(CMakePackageConfigHelpers)
set(FB_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/faberio)

install(TARGETS faberio_core EXPORT faberio ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(FB_BLAKE3_FROM_SOURCE)
  install(TARGETS fb_blake3 EXPORT faberio ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
# What a driver needs; the planes' headers and core/internal.h are not part of the contract.
set(include ${CMAKE_INSTALL_INCLUDEDIR}/faberio/protocol)
install(DIRECTORY protocol/base DESTINATION ${include} FILES_MATCHING PATTERN "*.h")
install(FILES protocol/core/effect.h protocol/core/event.h protocol/core/node.h
  protocol/core/observe.h protocol/core/options.h protocol/core/provider.h protocol/core/request.h
  DESTINATION ${include}/core)
install(FILES protocol/store/readset.h protocol/store/writeset.h protocol/store/keys.h
  DESTINATION ${include}/store)
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

# The service: a unit for systemd and the user that it runs as.
if(TARGET faberio)
  set(FB_SERVICE_PROGRAM ${CMAKE_INSTALL_FULL_BINDIR}/faberio)
  configure_file(runtime/daemon/faberio.service.in ${CMAKE_BINARY_DIR}/faberio.service @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/faberio.service DESTINATION lib/systemd/system
    COMPONENT service)
  install(FILES runtime/daemon/faberio.sysusers DESTINATION lib/sysusers.d RENAME faberio.conf
    COMPONENT service)
endif()
