// SPDX-License-Identifier: Apache-2.0
// A pipeline file (docs/formats/pipeline_toml.md) becomes a PipelineConfig, or is refused before
// anything runs:
//
//  1. TOML becomes a tree whose nodes know their lines (toml_tree.h).
//  2. Tables are read key by key, against the list of all keys (pipeline_keys.h, table_reader.h).
//  3. Patterns become files, cost models are looked up (source_files.h).
//  4. What keys say together is checked, last of all whether planning can do it (pipeline_check.h).
//
// Faults are gathered on the way and told together; 4 needs a file without faults so far.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "batchloom/base/status.h"
#include "batchloom/control/pipeline_config.h"
#include "batchloom/control/pipeline_faults.h"

namespace batchloom::control {

/// No pipeline file is larger.
inline constexpr std::size_t kPipelineMaxBytes = std::size_t{32} << 20;

/// How a pipeline file's reader gets at what the file names.
struct PipelineInputs {
  /// The files that a pattern matches, in their order (sources::files_matching). None may be an
  /// error, or not.
  std::function<Result<std::vector<std::string>>(const std::string& pattern)> expand;
  /// A whole file: the pipeline's own, and those of cost models and tokenizers.
  std::function<Result<std::string>(const std::string& path)> read;
};

/// A file that was read, and what it says.
struct PipelineFile {
  std::string file;  ///< Its path.
  PipelineConfig config;
  KeyLines lines;  ///< Of what it says; the rest has its default.
};

/// `text` is what stands in `file`. Relative paths in it count from the file's folder. Blocks as
/// long as `inputs` do. `invalid`, with all faults, each with line, key and what would be right:
/// unknown keys, wrong types, numbers out of range, names that nobody knows, patterns that match
/// nothing, and what the checks of pipeline_check.h find. A key whose feature is not built yet is
/// refused with these words.
Result<PipelineFile> parse_pipeline(std::string_view text, const std::string& file,
                                    const PipelineInputs& inputs);

/// The same of the file at `path`. Errors: as parse_pipeline() and `inputs.read`.
Result<PipelineFile> read_pipeline(const std::string& path, const PipelineInputs& inputs);

/// What `path`, written in `file`, names: relative paths count from the file's folder. URLs stay.
std::string path_beside(std::string_view file, std::string_view path);

}  // namespace batchloom::control
