# SPDX-License-Identifier: Apache-2.0
# Flags shared by everything that is compiled here: link to latchkey_flags (PRIVATE).
add_library(latchkey_flags INTERFACE)
target_compile_features(latchkey_flags INTERFACE c_std_11)
target_compile_options(latchkey_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes
  $<$<C_COMPILER_ID:Clang>:-Wthread-safety>
  $<$<BOOL:${LK_WERROR}>:-Werror>)
# Where a long has 32 bits: times after 2038. No public header has a time.
if(CMAKE_SIZEOF_VOID_P EQUAL 4)
  target_compile_definitions(latchkey_flags INTERFACE _TIME_BITS=64 _FILE_OFFSET_BITS=64)
endif()
# What cannot happen ends such a build.
target_compile_definitions(latchkey_flags INTERFACE
  $<$<OR:$<CONFIG:Debug>,$<BOOL:${LK_SANITIZE}>>:LK_STRICT>)

if(LK_SANITIZE STREQUAL "address")
  set(lk_sanitize -fsanitize=address,undefined -fno-sanitize-recover=all)
elseif(LK_SANITIZE STREQUAL "thread")
  set(lk_sanitize -fsanitize=thread)
elseif(LK_SANITIZE STREQUAL "fuzz")
  set(lk_sanitize -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all)
elseif(LK_SANITIZE STREQUAL "coverage")
  set(lk_sanitize -fprofile-instr-generate -fprofile-update=atomic -fcoverage-mapping "SHELL:-mllvm -runtime-counter-relocation")
elseif(LK_SANITIZE)
  message(FATAL_ERROR "LK_SANITIZE is '${LK_SANITIZE}'; use address, thread, fuzz, coverage or nothing")
endif()
if(LK_SANITIZE)
  target_compile_options(latchkey_flags INTERFACE ${lk_sanitize} -fno-omit-frame-pointer)
  target_link_options(latchkey_flags INTERFACE ${lk_sanitize})
endif()
