// SPDX-License-Identifier: Apache-2.0
// A number for each record of a shard, from which its split follows: kept in a file beside the
// shard's index, because planning asks for it, and what it is made of may lie in the shard alone.
// docs/formats/split_keys.md tells every byte.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "batchloom/base/bytes.h"
#include "batchloom/base/status.h"
#include "batchloom/objstore/file_ops.h"
#include "batchloom/sources/fingerprint.h"
#include "batchloom/sources/mapped_file.h"
#include "batchloom/sources/replaced_file.h"
#include "batchloom/sources/shard_reader.h"

namespace batchloom::sources {

/// Where those of `shard` lie: as its index, with another ending.
std::string split_keys_path(const std::string& shard, const std::string& index_folder);

/// Whether it is the name of such a file.
bool is_split_keys_path(std::string_view path);

/// Of what a record is: XXH3-64 over its ids, each in four bytes. Equal records have equal keys,
/// wherever and in whatever format they lie.
std::uint64_t content_key(std::span<const TokenId> ids);

struct SplitKeysHeader {
  ShardFingerprint shard;
  /// Of what the keys were made.
  std::uint64_t rule_digest = 0;
  std::uint64_t records = 0;

  friend bool operator==(const SplitKeysHeader&, const SplitKeysHeader&) = default;
};

inline constexpr std::uint16_t kSplitKeysVersion = 1;
inline constexpr std::size_t kSplitKeysHeaderBytes = 64;
/// So many keys are under one checksum.
inline constexpr std::uint64_t kSplitKeysBlock = 65'536;

/// Writes all keys of a shard in one pass. One thread at a time; blocks and ends as ReplacedFile,
/// and errors name the file.
class SplitKeysWriter {
 public:
  static Result<std::unique_ptr<SplitKeysWriter>> create(objstore::FileOps& files, std::string path,
                                                         const SplitKeysHeader& header);

  /// The next record's.
  Status append(std::uint64_t key);
  /// Call it once, at the end. Precondition: as many keys were appended as the header says.
  Status finish();

 private:
  SplitKeysWriter(std::string path, const SplitKeysHeader& header)
      : path_(std::move(path)), header_(header) {}

  Status put(ByteSpan bytes);
  Status end_block();

  const std::string path_;
  const SplitKeysHeader header_;
  std::unique_ptr<ReplacedFile> file_;
  Bytes block_;
  Bytes crcs_;
  std::uint64_t appended_ = 0;
};

/// The keys of a shard, mapped into memory and checked block by block when they are asked for.
/// Immutable; thread-safe. Calls block for as long as the disk does, with the first key of a block.
class SplitKeys {
 public:
  /// `not_found`: there are none, of another version of the format, or not those of `expected`
  /// (the message says why); `corruption`: damaged, with the byte. In both cases they can be made
  /// anew. Else as MappedFile::open().
  static Result<std::unique_ptr<SplitKeys>> open(const std::string& path,
                                                 const SplitKeysHeader& expected);

  /// `corruption` where its block is damaged. Precondition: there is such a record.
  Result<std::uint64_t> key(std::uint64_t record) const;

 private:
  SplitKeys(std::string path, std::unique_ptr<MappedFile> file, std::uint64_t records);

  Status check_block(std::uint64_t block) const;

  const std::string path_;
  const std::unique_ptr<MappedFile> file_;
  const std::uint64_t records_;
  std::unique_ptr<std::atomic<bool>[]> checked_;  ///< By block.
};

}  // namespace batchloom::sources
