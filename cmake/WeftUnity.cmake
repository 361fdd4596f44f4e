# Several sources are compiled as one: with what many share in headers, that takes a quarter of the time.
#
# It is done for tools and tests, and in builds with sanitizers for all else. In a build for users each source of a layer or a library
# stands for itself.
option(WEFT_UNITY "Compile several sources as one: those of tools and tests, and in builds with sanitizers all others" ON)

# So many at most, on average. More is faster from scratch and slower after a change.
set(weft_unity_size 12)

# weft_alone(SOURCE...): of this folder, are compiled by themselves. Two sources that give one name to two things, each in its
# anonymous namespace, cannot stand together.
function(weft_alone)
  set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

# weft_unity(TARGET): for its sources so far. Which of them stand together depends on their names alone, until the target has twice
# as many: a new source changes one group.
function(weft_unity target)
  if(NOT WEFT_UNITY)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "[.]cc$")
  list(LENGTH sources count)
  set(groups 1)
  math(EXPR left "(${count} - 1) / ${weft_unity_size}")
  while(left GREATER 0)
    math(EXPR groups "${groups} * 2")
    math(EXPR left "${left} / 2")
  endwhile()
  foreach(source ${sources})
    get_filename_component(name ${source} NAME)
    string(SHA1 digits ${name})
    string(SUBSTRING ${digits} 0 6 digits)
    math(EXPR group "0x${digits} % ${groups}")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP "${target}_${group}")
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()

# weft_unity_when_sanitized(TARGET): the same, in builds with sanitizers.
function(weft_unity_when_sanitized target)
  if(WEFT_SANITIZE)
    weft_unity(${target})
  endif()
endfunction()
