# SPDX-License-Identifier: Apache-2.0
# Big-endian, 64 bits: run as `qemu-s390x PROGRAM`.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR s390x)
set(CMAKE_C_COMPILER s390x-linux-gnu-gcc)
set(CMAKE_EXE_LINKER_FLAGS_INIT -static)
# This gcc takes the room behind a cursor for none; the others do not.
set(CMAKE_C_FLAGS_INIT -Wno-stringop-overflow)
