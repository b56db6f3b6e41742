# SPDX-License-Identifier: Apache-2.0
# libarrow and libparquet, as the Python package pyarrow has them: its wheel brings libraries and
# headers. What is built links those of the folder where they were found.
set(BATCHLOOM_PARQUET AUTO CACHE STRING
  "Read Parquet by the libraries of pyarrow: ON, OFF, or AUTO, which is where they are found")

# The version that scripts/setup installs.
file(STRINGS ${PROJECT_SOURCE_DIR}/tools/requirements.txt pyarrow REGEX "^pyarrow==")
string(REPLACE "pyarrow==" "" BATCHLOOM_PYARROW "${pyarrow}")

function(find_pyarrow OUT)
  set(python ${Python_EXECUTABLE})
  if(NOT python)
    find_program(python NAMES python3
      PATHS ${PROJECT_SOURCE_DIR}/.venv/bin NO_DEFAULT_PATH NO_CACHE)
  endif()
  if(NOT python)
    find_program(python NAMES python3 NO_CACHE)
  endif()
  # pyarrow is not imported: that takes half a second.
  execute_process(
    COMMAND ${python} -c "from importlib.util import find_spec
print(find_spec('pyarrow').submodule_search_locations[0])"
    WORKING_DIRECTORY ${PROJECT_BINARY_DIR}
    OUTPUT_VARIABLE folder OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  if(python AND NOT failed)
    set(${OUT} ${folder} PARENT_SCOPE)
  endif()
endfunction()

if(BATCHLOOM_PARQUET)
  find_pyarrow(folder)
  file(GLOB arrow ${folder}/libarrow.so.*)
  file(GLOB parquet ${folder}/libparquet.so.*)
  if(arrow AND parquet)
    message(STATUS "Parquet: by ${parquet}")
    foreach(name arrow parquet)
      add_library(batchloom_lib${name} SHARED IMPORTED)
      set_target_properties(batchloom_lib${name} PROPERTIES
        IMPORTED_LOCATION ${${name}} INTERFACE_INCLUDE_DIRECTORIES ${folder}/include)
    endforeach()
    # Programs that read no Parquet need not load 60 MB.
    target_link_options(batchloom_libarrow INTERFACE LINKER:--as-needed)
    target_link_libraries(batchloom_libparquet INTERFACE batchloom_libarrow)
  elseif(BATCHLOOM_PARQUET STREQUAL AUTO)
    message(STATUS "Parquet: not built, for pyarrow was not found")
  else()
    message(FATAL_ERROR "BATCHLOOM_PARQUET is ON and pyarrow was not found: "
      "pip install pyarrow==${BATCHLOOM_PYARROW}, or scripts/setup")
  endif()
endif()
