# Headers that are read once for many files: the tests build in less time with them.
#
# Layers (src/) have none in a build for users, so that each file there is known to include what it needs.

set(WEFT_STD_HEADERS <algorithm> <array> <atomic> <chrono> <cstdint> <cstring> <functional> <map> <memory> <mutex>
                     <optional> <set> <span> <string> <string_view> <thread> <tuple> <utility> <variant> <vector>)
set(WEFT_TEST_HEADERS ${WEFT_STD_HEADERS} <gtest/gtest.h>)

# weft_precompiled(NAME program|library HEADERS... [LINK libs...]): weft_use_precompiled(TARGET NAME) uses them from then
# on, for targets of that kind with the compiler's options of the folder that says this.
function(weft_precompiled name kind)
  cmake_parse_arguments(ARG "" "" "HEADERS;LINK" ${ARGN})
  set(source ${PROJECT_BINARY_DIR}/precompiled/${name}.cc)
  file(CONFIGURE OUTPUT ${source} CONTENT "int main() {}\n" @ONLY)
  if(kind STREQUAL program)
    add_executable(${name} ${source})
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/precompiled)
  else()
    add_library(${name} OBJECT ${source})
  endif()
  target_link_libraries(${name} PRIVATE ${ARG_LINK})
  target_precompile_headers(${name} PRIVATE ${ARG_HEADERS})
endfunction()

function(weft_use_precompiled target name)
  if(TARGET ${name})
    target_precompile_headers(${target} REUSE_FROM ${name})
  endif()
endfunction()
