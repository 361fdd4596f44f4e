# What is optimised when libibverbs is linked (WEFT_LTO) is compiled for that alone: the layers' libraries have machine code, which
# tests and tools link in a tenth of the time. Objects for both would not do: ar(1) lists what the optimiser knows of them, and the
# linker then misses what is not in their machine code.
define_property(GLOBAL PROPERTY WEFT_WHOLE_OBJECTS BRIEF_DOCS "objects of all layers" FULL_DOCS "for the optimiser of the linker")

# weft_optimise_when_linked(TARGET)
function(weft_optimise_when_linked target)
  target_compile_options(${target} PRIVATE -flto=auto)
endfunction()

# weft_whole_layer(NAME SOURCE...): the layer's objects for it.
function(weft_whole_layer name)
  if(WEFT_LTO)
    add_library(weft_${name}_whole OBJECT ${ARGN})
    weft_unity(weft_${name}_whole)
    weft_optimise_when_linked(weft_${name}_whole)
    target_include_directories(weft_${name}_whole PRIVATE ${PROJECT_SOURCE_DIR}/src)
    set_property(GLOBAL APPEND PROPERTY WEFT_WHOLE_OBJECTS $<TARGET_OBJECTS:weft_${name}_whole>)
  endif()
endfunction()

# weft_layer(NAME DEPENDS lower...): one static library weft_NAME for a folder of src/.
# DEPENDS is also what tests/layering reads: a file may include its own layer and these, nothing else.
define_property(GLOBAL PROPERTY WEFT_LAYERS BRIEF_DOCS "layer=dep,dep;..." FULL_DOCS "for tests/layering")

function(weft_layer name)
  cmake_parse_arguments(ARG "" "" "DEPENDS;LIBRARIES" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  if(sources)
    add_library(weft_${name} STATIC ${sources})
    weft_use_precompiled(weft_${name} weft_precompiled_layers)
    weft_unity_when_sanitized(weft_${name})
    weft_whole_layer(${name} ${sources})
    set(scope PUBLIC)
  else()
    add_library(weft_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(weft_${name} ${scope} ${PROJECT_SOURCE_DIR}/src)
  list(TRANSFORM ARG_DEPENDS PREPEND weft_ OUTPUT_VARIABLE libs)
  target_link_libraries(weft_${name} ${scope} ${libs} ${ARG_LIBRARIES})
  list(JOIN ARG_DEPENDS "," deps)
  set_property(GLOBAL APPEND PROPERTY WEFT_LAYERS "${name}=${deps}")
endfunction()

# weft_tool_layer(NAME DEPENDS others... LAYERS of src... LIBRARIES ...): one static library weft_NAME for a folder of tools/ and those
# below it. tests/layering reads DEPENDS and LAYERS likewise: a file may include its own folder, these tools and these layers.
function(weft_tool_layer name)
  cmake_parse_arguments(ARG "" "TARGET" "DEPENDS;LAYERS;LIBRARIES;EXCEPT" ${ARGN})
  if(NOT ARG_TARGET)
    set(ARG_TARGET weft_${name})
  endif()
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  list(TRANSFORM ARG_EXCEPT PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  list(REMOVE_ITEM sources ${ARG_EXCEPT} none)
  add_library(${ARG_TARGET} STATIC ${sources})
  weft_unity(${ARG_TARGET})
  target_include_directories(${ARG_TARGET} PUBLIC ${PROJECT_SOURCE_DIR}/tools)
  list(TRANSFORM ARG_DEPENDS PREPEND weft_)
  list(TRANSFORM ARG_LAYERS PREPEND weft_)
  target_link_libraries(${ARG_TARGET} PUBLIC ${ARG_DEPENDS} ${ARG_LAYERS} ${ARG_LIBRARIES})
endfunction()

# weft_sdp_layer(NAME DEPENDS others of sdp/... LAYERS of src... LIBRARIES ...): one static library weft_sdp_NAME for a folder of sdp/.
# tests/layering reads it like weft_tool_layer: SDP stands on the verbs headers, and of src/ it may have base alone.
function(weft_sdp_layer name)
  cmake_parse_arguments(ARG "" "" "DEPENDS;LAYERS;LIBRARIES" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  add_library(weft_sdp_${name} STATIC ${sources})
  weft_unity_when_sanitized(weft_sdp_${name})
  target_include_directories(weft_sdp_${name} PUBLIC ${PROJECT_SOURCE_DIR})
  list(TRANSFORM ARG_DEPENDS PREPEND weft_sdp_)
  list(TRANSFORM ARG_LAYERS PREPEND weft_)
  target_link_libraries(weft_sdp_${name} PUBLIC ${ARG_DEPENDS} ${ARG_LAYERS} ${ARG_LIBRARIES})
endfunction()

# weft_keep_captures(TARGET LABEL): a test of this GoogleTest program that fails leaves a capture in traces/LABEL.SUITE.TEST
# (tests/support/traced). To be called before gtest_discover_tests, which takes the launcher from this property; the time
# limit of the tests has to be above twice the launcher's.
function(weft_keep_captures target label)
  set_target_properties(${target} PROPERTIES CROSSCOMPILING_EMULATOR
                        "${PROJECT_SOURCE_DIR}/tests/support/traced;${CMAKE_BINARY_DIR}/traces/${label};120")
endfunction()

# weft_by_tcp(TARGET PREFIX LABEL): the tests of this GoogleTest program once more, with the two ends of an RC connection on one host
# kept to TCP, as they are between two hosts (spec/same-host 2); those of datagrams alone would be the same. Not with sanitizers, which
# see that way elsewhere.
function(weft_by_tcp target prefix label)
  if(NOT WEFT_SANITIZE)
    gtest_discover_tests(${target} TEST_PREFIX by_tcp.${prefix}
                         TEST_FILTER "-SameHost*:Uc*:Ud*:Unreliable*:Datagram*:Multicast*:Rd.*:RdFaults.*:Type/SendErrorOfU*:Routers/*:CmUc.*:CmUd.*:CmMulticast.*"
                         TEST_LIST ${target}_by_tcp DISCOVERY_TIMEOUT 60
                         PROPERTIES TIMEOUT 300 LABELS ${label} ENVIRONMENT WEFT_SAME_HOST=off)
  endif()
endfunction()

# weft_by_udp(TARGET PREFIX LABEL FILTER): some tests of this GoogleTest program once more, with RC over UDP (spec/wdp-rd 7).
function(weft_by_udp target prefix label filter)
  if(NOT WEFT_SANITIZE)
    gtest_discover_tests(${target} TEST_PREFIX by_udp.${prefix} TEST_FILTER "${filter}" TEST_LIST ${target}_by_udp DISCOVERY_TIMEOUT 60
                         PROPERTIES TIMEOUT 300 LABELS ${label} ENVIRONMENT WEFT_RC=udp)
  endif()
endfunction()

# weft_one_thread(TARGET): a test with one thread, in which ThreadSanitizer has nothing to find. Its build has it with WEFT_FULL;
# else by hand, ninja TARGET.
function(weft_one_thread target)
  if(WEFT_SANITIZE MATCHES "thread" AND NOT WEFT_FULL)
    set_target_properties(${target} PROPERTIES EXCLUDE_FROM_ALL ON)
  endif()
endfunction()

# weft_unit_tests(NAME LINK libs... [LABEL label] [KEEP_CAPTURES] [ONE_THREAD]): every *_test.cc of this folder in one GoogleTest
# program.
function(weft_unit_tests name)
  cmake_parse_arguments(ARG "KEEP_CAPTURES;ONE_THREAD" "LABEL" "LINK" ${ARGN})
  if(NOT ARG_LABEL)
    set(ARG_LABEL unit)
  endif()
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*_test.cc)
  if(NOT sources)
    return()
  endif()
  add_executable(${name} ${sources})
  target_link_libraries(${name} PRIVATE ${ARG_LINK} GTest::gtest GTest::gmock GTest::gtest_main)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  weft_use_precompiled(${name} weft_precompiled_tests)
  weft_unity(${name})
  if(ARG_ONE_THREAD)
    weft_one_thread(${name})
  endif()
  if(ARG_KEEP_CAPTURES)
    weft_keep_captures(${name} ${ARG_LABEL})
  endif()
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 300 LABELS ${ARG_LABEL})
endfunction()
