# SPDX-License-Identifier: Apache-2.0
# sim/: needs nothing but the core. faberio-sim-mutants is built from the same files, with the
# planted bugs; `faberio sim run --mutant` finds it next to the program that was called.
file(GLOB_RECURSE FB_SIM_SOURCES CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/sim/*.c)
set(FB_SIM_MAIN ${CMAKE_SOURCE_DIR}/sim/main.c)
list(REMOVE_ITEM FB_SIM_SOURCES ${FB_SIM_MAIN})
# The toy node stands in for the core at link time: a program of its own.
file(GLOB FB_SIM_TOYS CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/sim/toys/*.c)
list(REMOVE_ITEM FB_SIM_SOURCES ${FB_SIM_TOYS})

# The page of `sim view --html` is a file of its own, built in.
set(FB_SIM_PAGE ${CMAKE_BINARY_DIR}/sim/page.c)
add_custom_command(OUTPUT ${FB_SIM_PAGE}
  COMMAND ${CMAKE_COMMAND} -DFROM=${CMAKE_SOURCE_DIR}/sim/view/page.html -DTO=${FB_SIM_PAGE}
    -DNAME=fb_sim_page -P ${CMAKE_SOURCE_DIR}/cmake/Embed.cmake
  DEPENDS ${CMAKE_SOURCE_DIR}/sim/view/page.html ${CMAKE_SOURCE_DIR}/cmake/Embed.cmake VERBATIM)
list(APPEND FB_SIM_SOURCES ${FB_SIM_PAGE})

if(FB_SIM_SOURCES)
  add_library(faberio_sim STATIC ${FB_SIM_SOURCES})
  target_link_libraries(faberio_sim PUBLIC faberio_documents faberio_core)
  fb_use_system(faberio_sim)
  target_compile_options(faberio_sim PRIVATE ${FB_PROFILE_FLAGS})

  if(FB_SIM_TOYS)
    add_executable(faberio-sim-toys ${FB_SIM_TOYS})
    fb_program(faberio-sim-toys faberio_sim)
  endif()
  if(EXISTS ${FB_SIM_MAIN})
    add_executable(faberio-sim ${FB_SIM_MAIN})
    fb_program(faberio-sim faberio_sim)
    if(TARGET faberio_core_mutants)
      add_executable(faberio-sim-mutants ${FB_SIM_MAIN} ${FB_SIM_SOURCES} ${FB_DOCUMENTS_SOURCES})
      fb_program(faberio-sim-mutants faberio_core_mutants)
    endif()
  endif()
endif()
