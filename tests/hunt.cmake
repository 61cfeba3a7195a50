# SPDX-License-Identifier: Apache-2.0
# A hunt for a planted bug: each failure becomes a minimal schedule and a line of the ledger; seeds
# go on where the last hunt ended, old failures are played first.
file(REMOVE_RECURSE ${WORK})
set(hunt ${SIM} hunt --jobs 2 --out ${WORK} --commit tested --events 5k --mutant last-acked-kept)

execute_process(COMMAND ${hunt} --seeds 1..2 OUTPUT_VARIABLE out ERROR_VARIABLE err RESULT_VARIABLE code)
# What stays in the window keeps its envelope and is sent again: either is found first.
set(finders "(quiet-after-convergence|tables-empty)")
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
