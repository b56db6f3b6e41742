# SPDX-License-Identifier: Apache-2.0
# Warnings are errors in our presets only (BATCHLOOM_WERROR), never in a user's build.
option(BATCHLOOM_WERROR "Treat warnings as errors" OFF)

# Clang also counts fields that a designated initialiser leaves to their defaults, and what
# libstdc++ 12 itself uses of its deprecated functions (std::stable_sort does).
set(clang_only
  -Wthread-safety -Wno-missing-designated-field-initializers -Wno-deprecated-declarations)

add_library(batchloom_warnings INTERFACE)
target_compile_options(batchloom_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wshadow
  $<$<BOOL:${BATCHLOOM_WERROR}>:-Werror>
  "$<$<CXX_COMPILER_ID:Clang>:${clang_only}>")
