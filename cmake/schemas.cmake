# SPDX-License-Identifier: Apache-2.0

# add_schemas(TARGET file.fbs...)
#
# Generates <file>_generated.h into the build folder at the path of its schema, so that it is
# included as "batchloom/<module>/<file>_generated.h". Generated headers are bound to the installed
# FlatBuffers and never committed. The target `schemas` generates all of them.
add_custom_target(schemas)
function(add_schemas TARGET)
  file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  set(out ${PROJECT_BINARY_DIR}/schemas/${folder})
  set(generated)
  foreach(schema ${ARGN})
    get_filename_component(name ${schema} NAME_WE)
    set(header ${out}/${name}_generated.h)
    add_custom_command(
      OUTPUT ${header}
      COMMAND flatbuffers::flatc --cpp --cpp-std c++17 --scoped-enums --keep-prefix
              -I ${PROJECT_SOURCE_DIR} -o ${out} ${CMAKE_CURRENT_SOURCE_DIR}/${schema}
      DEPENDS ${schema}
      COMMENT "flatc ${folder}/${schema}")
    list(APPEND generated ${header})
  endforeach()
  add_custom_target(${TARGET}_schemas DEPENDS ${generated})
  add_dependencies(${TARGET} ${TARGET}_schemas)
  add_dependencies(schemas ${TARGET}_schemas)
  target_include_directories(${TARGET} SYSTEM PUBLIC ${PROJECT_BINARY_DIR}/schemas)
  target_link_libraries(${TARGET} PUBLIC flatbuffers::flatbuffers)
endfunction()
