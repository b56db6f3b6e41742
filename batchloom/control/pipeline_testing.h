// SPDX-License-Identifier: Apache-2.0
// What tests of pipelines share: a file system of names, and a pipeline to change.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "batchloom/base/random.h"
#include "batchloom/control/membership.h"
#include "batchloom/control/pipeline_toml.h"

namespace batchloom::control {

/// Files by their patterns, and the texts of files. A pattern that is not here matches nothing.
struct NamedFiles {
  std::map<std::string, std::vector<std::string>> matches;
  std::map<std::string, std::string> texts;

  /// Borrows this.
  PipelineInputs inputs() const;
};

/// docs-*.jsonl (two files), code.jsonl, pairs of Megatron in ids/, and
/// two models of sentencepiece.
const NamedFiles& plain_files();

/// A whole pipeline of the sources docs and code, which `plain_files` has; each of its lines is
/// unique.
std::string_view plain_pipeline_text();

/// The plain one, whose source code has pictures: a tar.
std::string picture_pipeline_text();

/// A pipeline that says as little as it can, of one source.
std::string_view shortest_pipeline_text();

/// The text with the first `stretch` in it replaced; fails the test where there is none.
std::string text_with(std::string_view text, std::string_view stretch, std::string_view instead);

/// parse_pipeline() of a "p.toml" over `plain_files`.
Result<PipelineFile> parse_plain(std::string_view text);

/// What parse_plain() refuses the plain text with, where a stretch of it is another one; "accepted"
/// if it does not.
std::string refusal_with(std::string_view stretch, std::string_view instead);

/// Of the text, which must be right; every file has a size and a fingerprint of its own.
Membership membership_of_plain(std::string_view text);
std::vector<std::vector<FileFingerprint>> fingerprints_of(const PipelineConfig& config);

/// Any config that check_pipeline() accepts over `plain_files`, two_module apart.
PipelineConfig any_pipeline(Random& random);

}  // namespace batchloom::control
