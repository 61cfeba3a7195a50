# SPDX-License-Identifier: Apache-2.0
# A hunt for a planted bug: each failure becomes a minimal schedule and a line of the ledger; seeds
# go on where the last hunt ended, old failures are played first.
file(REMOVE_RECURSE ${WORK})
set(hunt ${SIM} hunt --jobs 2 --out ${WORK} --commit tested --events 5k --mutant last-acked-kept)

execute_process(COMMAND ${hunt} --seeds 1..2 OUTPUT_VARIABLE out ERROR_VARIABLE err RESULT_VARIABLE code)
# What stays in the window keeps its envelope and is sent again: any of these is found first.
set(finders "(retries-paused|quiet-after-convergence|tables-empty)")
if(NOT code EQUAL 11 OR NOT out MATCHES "\"check\":\"${finders}\"")
  message(FATAL_ERROR "exit ${code}: ${out}${err}")
endif()
if(NOT err MATCHES "replay: ./dev sim replay [^\n]*${finders}-[0-9a-f]+\\.sched")
  message(FATAL_ERROR "no line to play it again: ${err}")
endif()
file(GLOB found ${WORK}/*.sched)
list(LENGTH found count)
file(READ ${WORK}/ledger.txt ledger)
if(count EQUAL 0 OR NOT ledger MATCHES "failure tested [12] ${finders}"
   OR NOT ledger MATCHES "runs tested 1\\.\\.2 ")
  message(FATAL_ERROR "${count} schedules, ledger: ${ledger}")
endif()

execute_process(COMMAND ${SIM} test ${found} OUTPUT_VARIABLE out ERROR_VARIABLE err RESULT_VARIABLE code)
if(NOT code EQUAL 0)
  message(FATAL_ERROR "what was found is not what is played: ${out}${err}")
endif()

execute_process(COMMAND ${hunt} --for 0s OUTPUT_VARIABLE out ERROR_VARIABLE err RESULT_VARIABLE code)
file(READ ${WORK}/ledger.txt ledger)
if(NOT code EQUAL 11 OR NOT ledger MATCHES "again tested ${finders}-[0-9a-f]+\\.sched fails")
  message(FATAL_ERROR "old failures are not played: ${ledger}${err}")
endif()

# A pool: runs that showed something new are mutated; with one job a hunt can be made again.
foreach(time 1 2)
  file(REMOVE_RECURSE ${WORK}-pool)
  execute_process(COMMAND ${SIM} hunt --jobs 1 --out ${WORK}-pool --explore pool --seeds 1..12
    --events 2k --nodes 3 OUTPUT_VARIABLE out ERROR_VARIABLE err RESULT_VARIABLE code)
  file(GLOB members ${WORK}-pool/pool/*.sched)
  list(LENGTH members count)
  if(NOT code EQUAL 0 OR count LESS 2)
    message(FATAL_ERROR "exit ${code}, ${count} in the pool: ${out}${err}")
  endif()
  string(REGEX MATCH "\"runs\".*" shown${time} "${out}")
  foreach(member ${members})
    file(SHA256 ${member} hash)
    list(APPEND shown${time} ${hash})
  endforeach()
endforeach()
if(NOT shown1 STREQUAL shown2 OR shown1 STREQUAL "")
  message(FATAL_ERROR "two hunts alike: ${shown1}\n${shown2}")
endif()
execute_process(COMMAND ${SIM} hunt --jobs 1 --out ${WORK}-pool --explore nowhere --seeds 1..2
  OUTPUT_QUIET ERROR_QUIET RESULT_VARIABLE code)
if(NOT code EQUAL 2)
  message(FATAL_ERROR "a way to explore that there is not: exit ${code}")
endif()
