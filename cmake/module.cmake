# SPDX-License-Identifier: Apache-2.0
include(GoogleTest)

# Test sources are not optimised, whatever the preset: with GoogleTest and RapidCheck that halves
# the time that sanitizer builds take. What they test is.
add_library(batchloom_test_code INTERFACE)
target_compile_options(batchloom_test_code INTERFACE -O0)

# What nearly every test includes, parsed once for all test programs: with clang that nearly halves
# the time of a test's compilation.
if(BATCHLOOM_TESTS)
  file(CONFIGURE OUTPUT test_headers.cc CONTENT "")
  add_library(batchloom_test_headers OBJECT ${CMAKE_CURRENT_BINARY_DIR}/test_headers.cc)
  target_precompile_headers(batchloom_test_headers PRIVATE
    <gmock/gmock.h> <gtest/gtest.h> <rapidcheck/gtest.h>
    <fmt/format.h> <algorithm> <functional> <map> <memory> <optional> <set> <string> <vector>)
  target_compile_options(batchloom_test_headers PRIVATE
    $<$<CXX_COMPILER_ID:Clang>:SHELL:-Xclang -fno-pch-timestamp>  # So that ccache may keep it.
    $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
  target_link_libraries(batchloom_test_headers PRIVATE
    GTest::gmock rapidcheck rapidcheck_gtest fmt::fmt batchloom_warnings batchloom_test_code)
endif()

# add_module(NAME [PURE] [DEPENDS target...] [LINK target...] [TEST_LINK target...])
#
# Makes the static library batchloom_<NAME> (alias batchloom::<NAME>) from the .cc files of the
# current folder, and, where tests are built, batchloom_<NAME>_tests from its *_test.cc files.
# DEPENDS are what a user of the module's headers needs too; LINK are implementation details, named
# in .cc files only; TEST_LINK are for tests and fixtures. Files called *_testing.{h,cc} are shared
# fixtures: they go into the library batchloom_<NAME>_testing, which other modules' tests may link.
# A PURE module's functions share no state with anybody: there is nothing in its tests for
# ThreadSanitizer, which leaves them out (BATCHLOOM_PURE_TESTS).
function(add_module NAME)
  cmake_parse_arguments(ARG "PURE" "" "DEPENDS;LINK;TEST_LINK" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS *.cc)
  file(GLOB headers CONFIGURE_DEPENDS *.h)
  set(tests ${sources})
  set(fixtures ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER fixtures INCLUDE REGEX "_testing\\.cc$")
  list(FILTER sources EXCLUDE REGEX "_(test|testing)\\.cc$")
  list(FILTER headers EXCLUDE REGEX "_testing\\.h$")

  set(target batchloom_${NAME})
  add_library(${target} STATIC ${sources})
  add_library(batchloom::${NAME} ALIAS ${target})
  # The Python extension is a shared library and holds it.
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ${BATCHLOOM_PYTHON})
  set_property(GLOBAL APPEND PROPERTY BATCHLOOM_MODULES batchloom::${NAME})
  target_sources(${target} PUBLIC
    FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${headers})
  target_link_libraries(${target} PUBLIC ${ARG_DEPENDS} PRIVATE ${ARG_LINK} batchloom_warnings)

  if(NOT BATCHLOOM_TESTS)
    return()
  endif()
  if(fixtures)
    add_library(${target}_testing STATIC ${fixtures})
    target_link_libraries(${target}_testing
      PUBLIC ${target} ${ARG_TEST_LINK} GTest::gmock rapidcheck rapidcheck_gtest
      PRIVATE ${ARG_LINK} batchloom_warnings batchloom_test_code)
    target_precompile_headers(${target}_testing REUSE_FROM batchloom_test_headers)
  endif()
  if(tests AND (BATCHLOOM_PURE_TESTS OR NOT ARG_PURE))
    add_test_program(${target}_tests PREFIX ${NAME}. SOURCES ${tests}
      LINK ${target} $<TARGET_NAME_IF_EXISTS:${target}_testing> ${ARG_LINK} ${ARG_TEST_LINK})
  endif()
endfunction()

set(BATCHLOOM_TEST_SHARDS 0 CACHE STRING
  "0: every test case is a process of its own; N: each test program runs as N processes, with a \
share of its cases each, as our presets do: starting one takes long")

# add_test_program(TARGET PREFIX text SOURCES file... LINK target...)
#
# An executable of GoogleTest and RapidCheck tests. Every test case becomes a ctest test, named
# after PREFIX, that fails after 300 s. With BATCHLOOM_TEST_SHARDS every shard does, after 900 s,
# and leaves a report of its cases in the folder `cases` of the build folder.
function(add_test_program TARGET)
  cmake_parse_arguments(ARG "" "PREFIX" "SOURCES;LINK" ${ARGN})
  add_executable(${TARGET} ${ARG_SOURCES})
  target_link_libraries(${TARGET} PRIVATE
    ${ARG_LINK} GTest::gmock GTest::gtest_main rapidcheck rapidcheck_gtest batchloom_warnings
    batchloom_test_code)
  target_precompile_headers(${TARGET} REUSE_FROM batchloom_test_headers)
  if(NOT BATCHLOOM_TEST_SHARDS)
    gtest_discover_tests(${TARGET}
      TEST_PREFIX ${ARG_PREFIX} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
      PROPERTIES TIMEOUT 300)
    return()
  endif()
  math(EXPR last "${BATCHLOOM_TEST_SHARDS} - 1")
  foreach(shard RANGE ${last})
    set(test ${ARG_PREFIX}shard-${shard})
    add_test(NAME ${test}
      COMMAND ${TARGET} --gtest_brief --gtest_output=xml:${PROJECT_BINARY_DIR}/cases/${test}.xml)
    set_tests_properties(${test} PROPERTIES
      TIMEOUT 900
      ENVIRONMENT "GTEST_TOTAL_SHARDS=${BATCHLOOM_TEST_SHARDS};GTEST_SHARD_INDEX=${shard}")
  endforeach()
endfunction()
