# SPDX-License-Identifier: Apache-2.0
# Installs BUILD into a fresh tree below WORK, configures the consumer against that tree alone,
# builds it and runs it.
cmake_path(GET CMAKE_SCRIPT_MODE_FILE PARENT_PATH source)
file(REMOVE_RECURSE ${WORK})

function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)
run(${CMAKE_COMMAND} -S ${source} -B ${WORK}/build -G ${GENERATOR}
  -DCMAKE_C_COMPILER=${COMPILER} -DCMAKE_PREFIX_PATH=${WORK}/prefix)
run(${CMAKE_COMMAND} --build ${WORK}/build)
run(${WORK}/build/consumer)
