// SPDX-License-Identifier: Apache-2.0
// What decides which samples every step of a stream holds, and nothing else: the canonical list
// that a stream commits, and that the next run must match.
//
//   source.code.file."a.jsonl" = 1048576 bytes, 5b2c0d7a11e0f3a4
//   source.code.files = 1 file, 1048576 bytes, order 9d1f0c6be5a7b210
//   source.code.weight = 0.1
//   sources = ["docs", "code"]
//   step.tokens = 524288
//
//  1. Lines ascend by their keys, and no two are of one key. Equal lists are equal bytes.
//  2. There is a line for each setting whose key has KeyEffect::kMembership (pipeline_keys.h) and
//     that has a value, for what a tokenizer's model holds, for the order of the sources, for each
//     file, and for the order of a source's files. What else a pipeline says may change from run
//     to run.
//  3. A file is known by its name below the folder that all files of the source have in common, its
//     size and its fingerprint: data may move as a whole.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "batchloom/base/bytes.h"
#include "batchloom/base/hash.h"
#include "batchloom/base/status.h"
#include "batchloom/control/pipeline_config.h"

namespace batchloom::control {

/// What a file held when it was indexed.
struct FileFingerprint {
  std::string path;
  std::uint64_t size_bytes = 0;
  std::uint64_t fingerprint = 0;  ///< Whatever tells contents apart.
};

struct MembershipLine {
  std::string key;
  std::string value;

  friend bool operator==(const MembershipLine&, const MembershipLine&) = default;
};

/// Immutable; thread-safe.
class Membership {
 public:
  /// Of nothing.
  Membership() = default;

  /// `files` are those of SourceConfig::paths, by source and in their order; `invalid` if they are
  /// others.
  static Result<Membership> create(const PipelineConfig& config,
                                   std::span<const std::vector<FileFingerprint>> files);

  std::span<const MembershipLine> lines() const { return lines_; }
  /// "key = value" and a line end for each line.
  std::string text() const;
  /// The names of the sources, in their order. `corruption`: no list of them is here.
  Result<std::vector<std::string>> sources() const;
  /// Of text().
  Hash128 digest() const;

  friend bool operator==(const Membership&, const Membership&) = default;

 private:
  friend Result<Membership> decode_membership(ByteSpan bytes);

  explicit Membership(std::vector<MembershipLine> lines) : lines_(std::move(lines)) {}

  std::vector<MembershipLine> lines_;
};

/// What changed, a line for each key: "source.code.weight: 0.1 -> 0.2"; "(nothing)" stands for a
/// side that lacks it. After `most` lines, one that counts the others.
std::vector<std::string> differences(const Membership& before, const Membership& after,
                                     std::size_t most = 50);

/// No stored membership is larger; it has room for about 200,000 files.
inline constexpr std::size_t kMembershipMaxBytes = std::size_t{16} << 20;

/// Stored bytes (docs/formats/membership.md). `exhausted`: larger than kMembershipMaxBytes.
Result<Bytes> encode_membership(const Membership& membership);

/// The list in `bytes`, which may be hostile. `corruption`: damaged, cut short, or no list as
/// above; `invalid`: of a later version. The message names the byte or line, and the reason.
Result<Membership> decode_membership(ByteSpan bytes);

}  // namespace batchloom::control
