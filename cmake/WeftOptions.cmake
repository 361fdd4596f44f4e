# What every target is compiled with.

option(WEFT_TESTS "Build the tests" ON)
if(WEFT_TESTS)
  find_package(GTest QUIET)
  if(NOT GTest_FOUND)
    message(STATUS "No tests: GTest is not installed; remedy: scripts/setup")
    set(WEFT_TESTS OFF)   # until it is
  endif()
endif()
set(WEFT_SANITIZE "" CACHE STRING "Sanitizers for -fsanitize=, such as address,undefined")
option(WEFT_FUZZ "Build the libFuzzer targets (clang only)" OFF)
# Only what ./check compiles with has been seen to be without warnings, and that asks for it by name.
set(warnings_are_errors OFF)
if((CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION MATCHES "^12[.]") OR
   (CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION MATCHES "^14[.]"))
  set(warnings_are_errors ON)
endif()
option(WEFT_WERROR "Warnings are errors; the default for GCC 12 and clang 14, which CI compiles with" ${warnings_are_errors})
# It brings a tenth of the rate of small requests (docs/performance-notes.md). GCC alone, which is what it was measured with.
set(whole OFF)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_BUILD_TYPE STREQUAL "RelWithDebInfo" AND NOT WEFT_SANITIZE)
  set(whole ON)
endif()
option(WEFT_LTO "Optimise libibverbs as a whole when it is linked; the default for GCC and the release preset" ${whole})
option(WEFT_FULL "Also build what ./check leaves to ./check --full" OFF)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)

add_compile_options(-Wall -Wextra $<$<BOOL:${WEFT_WERROR}>:-Werror> -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual
                    -Wcast-align -Wundef -Wvla -Wno-missing-field-initializers)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)  # for ccache, too
  add_compile_options(-Wduplicated-cond -Wlogical-op $<$<COMPILE_LANGUAGE:CXX>:-Wsuggest-override>)
endif()
if(WEFT_SANITIZE)
  # A finding ends the program: UBSan alone would print it and go on, and the test would pass.
  add_compile_options(-fsanitize=${WEFT_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${WEFT_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # GCC finds uninitialized values in every moved std::optional of instrumented code.
    add_compile_options(-Wno-maybe-uninitialized)
  endif()
endif()
# For tests and tools: of UBSan's checks these take a third of the compiler's time. AddressSanitizer sees null pointers as well. An inline
# function of a layer that is not put into its callers may be linked from a test, and is without them, too.
set(weft_costly_checks "")
if(WEFT_SANITIZE MATCHES "undefined")
  set(weft_costly_checks -fno-sanitize=null,alignment,vptr)
endif()
if(WEFT_FUZZ)
  # Coverage in every layer; fuzz/ alone links libFuzzer's main.
  add_compile_options(-fsanitize=fuzzer-no-link)
  add_link_options(-fsanitize=fuzzer-no-link)
endif()

find_program(CCACHE ccache)
if(CCACHE)
  # All trees of the project share what one of them compiled. Debug information then names the folder of that tree.
  set(shared_by_trees CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1)
  # What ccache asks of builds with precompiled headers.
  set(precompiled CCACHE_SLOPPINESS=pch_defines,time_macros)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env ${shared_by_trees} ${precompiled} ${CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env ${shared_by_trees} ${CCACHE})
endif()

find_package(Threads REQUIRED)
