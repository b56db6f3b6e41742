// SPDX-License-Identifier: Apache-2.0
// The files of a source, and what format they have.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "batchloom/base/status.h"
#include "batchloom/control/pipeline_config.h"

namespace batchloom::control {

/// A format that a file's name tells, or that `format` says.
struct KnownFormat {
  std::string_view name;
  std::string_view suffix;
  std::optional<SourceFormat> built;  ///< Absent: not built yet.
};

/// All formats that are known, those that are not built yet among them.
std::span<const KnownFormat> known_formats();

/// "jsonl", "megatron", ...
std::string_view to_string(SourceFormat format);

/// The names of those that are built: "jsonl, megatron, ...".
std::string built_formats();

/// By the end of a file's name, or nullptr.
const KnownFormat* format_of_path(std::string_view path);
/// By its name, or nullptr.
const KnownFormat* format_of_name(std::string_view name);

/// A pattern of a source, and what it matched.
struct MatchedFiles {
  std::string pattern;
  std::vector<std::string> paths;
};

/// The files to read, in order: of Megatron's pairs the .bin, whichever of the two was matched.
/// `invalid`: a file that two patterns match; of Megatron, one that ends otherwise.
Result<std::vector<std::string>> files_to_read(SourceFormat format,
                                               std::span<const MatchedFiles> matched);

/// The format that all files have. `invalid`, naming a file: formats that differ, that are not
/// built yet, or that the name does not tell; a name that says something else than `given`.
Result<SourceFormat> common_format(std::optional<SourceFormat> given,
                                   std::span<const MatchedFiles> matched);

}  // namespace batchloom::control
