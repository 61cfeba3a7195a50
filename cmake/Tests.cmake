# SPDX-License-Identifier: Apache-2.0
# tests/: labels are the folder names (unit, tidy, e2e, ...), so `ctest -L unit` is what it says.
find_package(PkgConfig REQUIRED)
pkg_check_modules(CMOCKA REQUIRED IMPORTED_TARGET cmocka)
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson)
find_package(Python3 REQUIRED COMPONENTS Interpreter)

# Unit tests: one program for each tests/unit/test_*.c; other files there are shared helpers.
file(GLOB FB_UNIT_TESTS CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/unit/test_*.c)
file(GLOB FB_UNIT_SUPPORT CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/unit/*.c)
list(REMOVE_ITEM FB_UNIT_SUPPORT ${FB_UNIT_TESTS})
if(NOT TARGET faberio_mongo_parts)
  list(FILTER FB_UNIT_TESTS EXCLUDE REGEX "/test_mongo_[a-z_]*[.]c$")
endif()
add_library(fb_test_support STATIC ${FB_UNIT_SUPPORT})
fb_use_system(fb_test_support)
target_link_libraries(fb_test_support PUBLIC ${FB_ALL_PARTS} PkgConfig::CMOCKA
  PkgConfig::JANSSON)
foreach(source ${FB_UNIT_TESTS})
  get_filename_component(name ${source} NAME_WE)
  add_executable(${name} ${source})
  fb_test_program(${name} fb_test_support)
  target_compile_definitions(${name} PRIVATE FB_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS unit TIMEOUT 240)
  if(name MATCHES "^test_mongo_")
    target_link_libraries(${name} PRIVATE faberio_mongo_parts)
  endif()
endforeach()

# Memory that runs out where the test says.
foreach(name malloc calloc realloc strdup)
  target_link_options(test_allocation PRIVATE -Wl,--wrap=${name})
endforeach()
# A store whose next write fails when the test says.
target_link_options(test_store_forget PRIVATE -Wl,--wrap=fb_lmdb_env_write)

# The hashes of this build against the golden file: docs/SIMULATOR.md says what a difference means.
if(TARGET faberio-sim)
  add_test(NAME golden_hashes COMMAND Python3::Interpreter ${CMAKE_SOURCE_DIR}/tests/determinism.py
    golden $<TARGET_FILE:faberio-sim>)
  set_tests_properties(golden_hashes PROPERTIES LABELS golden TIMEOUT 240)
endif()

# The simulator's adversary, tested with a toy node.
if(TARGET faberio-sim-toys)
  add_test(NAME sim_toys COMMAND faberio-sim-toys)
  set_tests_properties(sim_toys PROPERTIES LABELS unit TIMEOUT 240)
  add_test(NAME sim_toys_matrix COMMAND faberio-sim-toys matrix)
  set_tests_properties(sim_toys_matrix PROPERTIES LABELS mutants TIMEOUT 600)
endif()

# A log and a blob store on the simulated disk, crashed at every call; their defects are found.
if(TARGET faberio-sim)
  add_test(NAME sim_disk COMMAND faberio-sim disk)
  set_tests_properties(sim_disk PROPERTIES LABELS unit TIMEOUT 240)
  add_test(NAME sim_disk_defects COMMAND faberio-sim disk --defects)
  set_tests_properties(sim_disk_defects PROPERTIES LABELS disk TIMEOUT 600)
endif()

# The catalogue of faults: documented, each fires, and one that is never on moves nothing.
add_test(NAME faults_table COMMAND Python3::Interpreter ${CMAKE_SOURCE_DIR}/tests/faults.py --table)
set_tests_properties(faults_table PROPERTIES LABELS unit TIMEOUT 60)
if(TARGET faberio-sim)
  add_test(NAME faults_fire COMMAND Python3::Interpreter ${CMAKE_SOURCE_DIR}/tests/faults.py --fire
    --build ${CMAKE_BINARY_DIR})
  set_tests_properties(faults_fire PROPERTIES LABELS mutants TIMEOUT 480)
endif()
if(TARGET faberio-sim-mutants)
  add_test(NAME faults_nothing COMMAND Python3::Interpreter ${CMAKE_SOURCE_DIR}/tests/faults.py
    --nothing --build ${CMAKE_BINARY_DIR})
  set_tests_properties(faults_nothing PROPERTIES LABELS unit TIMEOUT 120)
  add_test(NAME faults_shown COMMAND Python3::Interpreter ${CMAKE_SOURCE_DIR}/tests/faults.py
    --shown --build ${CMAKE_BINARY_DIR})
  set_tests_properties(faults_shown PROPERTIES LABELS mutants TIMEOUT 120)
endif()

# Planted bugs: each has a schedule, a few are found by a seed; all of them in ./dev nightly.
add_test(NAME mutants_scheduled COMMAND Python3::Interpreter ${CMAKE_SOURCE_DIR}/tests/mutants.py
  --scheduled)
set_tests_properties(mutants_scheduled PROPERTIES LABELS unit TIMEOUT 60)
add_test(NAME mutants_tabled COMMAND Python3::Interpreter ${CMAKE_SOURCE_DIR}/tests/mutants.py
  --tabled)
set_tests_properties(mutants_tabled PROPERTIES LABELS mutants TIMEOUT 60)
if(TARGET faberio-sim-mutants)
  add_test(NAME mutants_smoke COMMAND Python3::Interpreter ${CMAKE_SOURCE_DIR}/tests/mutants.py
    --smoke --build ${CMAKE_BINARY_DIR})
  set_tests_properties(mutants_smoke PROPERTIES LABELS mutants TIMEOUT 240)
  add_test(NAME oracle_mutants_smoke COMMAND Python3::Interpreter
    ${CMAKE_SOURCE_DIR}/tests/oracle_mutants.py --smoke --build ${CMAKE_BINARY_DIR})
  set_tests_properties(oracle_mutants_smoke PROPERTIES LABELS mutants TIMEOUT 240)
endif()

# Schedules: the corpus comes to what it expects; failing runs shrink.
if(TARGET faberio-sim-mutants)
  add_test(NAME scenarios COMMAND faberio-sim test ${CMAKE_SOURCE_DIR}/tests/scenarios)
  set_tests_properties(scenarios PROPERTIES LABELS scenarios TIMEOUT 240)
  add_test(NAME shrink_smoke COMMAND Python3::Interpreter ${CMAKE_SOURCE_DIR}/tests/shrink.py
    --smoke --build ${CMAKE_BINARY_DIR})
  set_tests_properties(shrink_smoke PROPERTIES LABELS mutants TIMEOUT 240)
  # A hunt finds, shrinks and enters a planted bug, and a second one begins with it.
  add_test(NAME hunt_smoke COMMAND ${CMAKE_COMMAND} -DSIM=$<TARGET_FILE:faberio-sim>
    -DWORK=${CMAKE_BINARY_DIR}/hunt-smoke -P ${CMAKE_SOURCE_DIR}/tests/hunt.cmake)
  set_tests_properties(hunt_smoke PROPERTIES LABELS mutants TIMEOUT 240)
endif()

# The real store, crashed at every call: its system calls and its database's are the program's own.
file(GLOB FB_CRASH CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/crash/*.c)
if(FB_CRASH AND TARGET faberio_io)
  add_executable(crash_lmdb ${FB_CRASH})
  fb_test_program(crash_lmdb ${FB_ALL_PARTS})
  set_target_properties(crash_lmdb PROPERTIES ENABLE_EXPORTS ON
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/crash)
  foreach(name env_open env_close txn_begin txn_commit put)
    target_link_options(crash_lmdb PRIVATE -Wl,--wrap=mdb_${name})
  endforeach()
  add_test(NAME crash_lmdb COMMAND crash_lmdb)
  set_tests_properties(crash_lmdb PROPERTIES LABELS crash TIMEOUT 300)
endif()

# Benchmarks are programs to run, not tests: ./dev bench.
file(GLOB FB_BENCHES CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/bench/bench_*.c)
foreach(source ${FB_BENCHES})
  get_filename_component(name ${source} NAME_WE)
  add_executable(${name} ${source})
  fb_program(${name} ${FB_ALL_PARTS})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bench)
endforeach()
# tests/bench/bench_many.py runs it on the store of a node that was filled.
if(TARGET faberio_io)
  add_executable(lmdb_bulk ${CMAKE_SOURCE_DIR}/tests/bench/lmdb_bulk.c)
  fb_program(lmdb_bulk ${FB_ALL_PARTS})
  set_target_properties(lmdb_bulk PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bench)
endif()
# Beside the module that it loads; tests/bench/bench_mongodb.py runs it with a server.
if(TARGET faberio_mongo)
  add_executable(mongodb_puts ${CMAKE_SOURCE_DIR}/tests/bench/mongodb_puts.c)
  target_link_libraries(mongodb_puts PRIVATE faberio_io PkgConfig::MONGOC)
  fb_use_system(mongodb_puts)
endif()
if(TARGET bench_envelope)
  target_sources(bench_envelope PRIVATE ${CMAKE_SOURCE_DIR}/tests/bench/envelope_shapes.c)
  target_link_libraries(bench_envelope PRIVATE fb_fuzz_proto PkgConfig::JANSSON PkgConfig::SODIUM)
endif()

# The conformance adapter once more, in front of the core that has the planted bugs.
file(GLOB FB_ADAPTER_PARTS CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/runtime/conformance/*.c
  ${CMAKE_SOURCE_DIR}/runtime/command/conformance.c)
if(TARGET faberio_core_mutants AND FB_ADAPTER_PARTS AND TARGET faberio_io)
  add_executable(adapter_mutants ${CMAKE_SOURCE_DIR}/tests/conformance/adapter_mutants.c
    ${FB_ADAPTER_PARTS} ${CMAKE_SOURCE_DIR}/io/keys/provider_sodium.c
    ${CMAKE_SOURCE_DIR}/io/assert.c ${CMAKE_SOURCE_DIR}/sim/world/store.c ${CMAKE_SOURCE_DIR}/sim/world/blobs.c
    ${CMAKE_SOURCE_DIR}/sim/world/fail.c ${CMAKE_SOURCE_DIR}/sim/mutants.c)
  fb_test_program(adapter_mutants faberio_core_mutants PkgConfig::SODIUM PkgConfig::JANSSON)
  target_compile_definitions(adapter_mutants PRIVATE FB_VERSION="${PROJECT_VERSION} with bugs")
  set_target_properties(adapter_mutants PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
endif()

# Programs that speak with other implementations; tests in Python run them.
file(GLOB FB_INTEROPS CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/interop/*.c)
foreach(source ${FB_INTEROPS})
  get_filename_component(name ${source} NAME_WE)
  add_executable(${name} ${source})
  fb_program(${name} ${FB_ALL_PARTS})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/interop)
endforeach()

# Tests in Python: one for each tests/FOLDER/test_*.py, labelled FOLDER. The interpreter is that of
# the virtual environment which ./dev makes; without it they fail, they are not skipped.
set(FB_VENV_PYTHON ${CMAKE_SOURCE_DIR}/build/venv/bin/python CACHE FILEPATH
  "Python with tests/requirements.txt installed")
file(GLOB FB_PYTESTS CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/*/test_*.py)
foreach(source ${FB_PYTESTS})
  get_filename_component(name ${source} NAME_WE)
  get_filename_component(folder ${source} DIRECTORY)
  get_filename_component(folder ${folder} NAME)
  add_test(NAME ${folder}_${name}
    COMMAND ${FB_VENV_PYTHON} -m pytest -q -p no:cacheprovider ${source}
    WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set_tests_properties(${folder}_${name} PROPERTIES LABELS ${folder} TIMEOUT 600
    ENVIRONMENT "FABERIO_BIN=${CMAKE_BINARY_DIR}/faberio;FABERIO_BUILD=${CMAKE_BINARY_DIR}")
endforeach()

# Tidy needs no package of the environment. Instrumented objects are not what ships: text rules only.
add_test(NAME tidy_rules COMMAND Python3::Interpreter ${CMAKE_SOURCE_DIR}/tests/tidy/tidy.py
  $<$<BOOL:${FB_PLAIN_OBJECTS}>:--build> $<$<BOOL:${FB_PLAIN_OBJECTS}>:${CMAKE_BINARY_DIR}>
  COMMAND_EXPAND_LISTS)
add_test(NAME tidy_selftest COMMAND Python3::Interpreter
  ${CMAKE_SOURCE_DIR}/tests/tidy/selftest.py)
set_tests_properties(tidy_rules tidy_selftest PROPERTIES LABELS tidy TIMEOUT 120)

# The catalogue of requirements against itself, the code, the checks and the tests; and its tools.
set(FB_CONFORMANCE ${CMAKE_SOURCE_DIR}/specs-conformance)
add_test(NAME requirements_catalogue
  COMMAND Python3::Interpreter ${FB_CONFORMANCE}/check_catalogue.py)
add_test(NAME requirements_selftest COMMAND Python3::Interpreter ${FB_CONFORMANCE}/selftest.py)
add_test(NAME requirements_report COMMAND Python3::Interpreter ${FB_CONFORMANCE}/report.py)
set_tests_properties(requirements_catalogue requirements_selftest requirements_report PROPERTIES
  LABELS "unit;conformance" TIMEOUT 120)

# The conformance suite against both runtimes that there are; those that are wrong in one way are
# tests/conformance/test_wrong_adapters.py.
set(FB_SUITE ${FB_VENV_PYTHON} -m pytest -q -p no:cacheprovider ${FB_CONFORMANCE})
add_test(NAME conformance_suite_python COMMAND ${FB_SUITE} --whole
  --adapter "${FB_VENV_PYTHON} ${FB_CONFORMANCE}/runtime_python.py")
set_tests_properties(conformance_suite_python PROPERTIES LABELS conformance TIMEOUT 600)
if(TARGET faberio)
  add_test(NAME conformance_suite_reference COMMAND ${FB_SUITE} --whole
    --adapter "$<TARGET_FILE:faberio> conformance adapter"
    --report ${CMAKE_BINARY_DIR}/conformance/report.html
    --report ${CMAKE_BINARY_DIR}/conformance/report.json)
  set_tests_properties(conformance_suite_reference PROPERTIES LABELS conformance TIMEOUT 600)
endif()

# The install tree is used by a project that sees nothing else.
if(FB_PLAIN_OBJECTS)
  add_test(NAME consumer COMMAND ${CMAKE_COMMAND} -DBUILD=${CMAKE_BINARY_DIR}
    -DWORK=${CMAKE_BINARY_DIR}/consumer -DGENERATOR=${CMAKE_GENERATOR}
    -DCOMPILER=${CMAKE_C_COMPILER} -P ${CMAKE_SOURCE_DIR}/tests/consumer/run.cmake)
  set_tests_properties(consumer PROPERTIES LABELS consumer TIMEOUT 120)
endif()
