// SPDX-License-Identifier: Apache-2.0
// How a file that has changed is told from the one that was indexed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "batchloom/base/status.h"
#include "batchloom/sources/byte_reader.h"

struct stat;

namespace batchloom::sources {

/// What a file system says of a file: cheap to ask, kept for as long as a run lasts.
struct FileStamp {
  std::uint64_t size_bytes = 0;
  std::int64_t modified_ns = 0;  ///< Since 1970.
  std::uint64_t device = 0;
  std::uint64_t inode = 0;

  friend bool operator==(const FileStamp&, const FileStamp&) = default;
};

/// What is kept of a shard beyond a run: the same on every machine that mounts it.
struct ShardFingerprint {
  std::uint64_t size_bytes = 0;
  std::int64_t modified_ns = 0;     ///< Since 1970.
  std::uint64_t ends_checksum = 0;  ///< See ends_checksum().

  friend bool operator==(const ShardFingerprint&, const ShardFingerprint&) = default;
};

/// As much of each end of a file is under its fingerprint.
inline constexpr std::uint64_t kFingerprintEndBytes = std::uint64_t{64} << 10;

/// Asks the file system; blocks for as long as it does. Follows links. Errors name the path:
/// `not_found` where there is nothing, `invalid` for a missing permission and for a folder, a pipe
/// and whatever else is no plain file; else as in objstore/file_ops.h.
Result<FileStamp> stamp_of(const std::string& path);

/// What stat(2) or fstat(2) said of `path`. `invalid` for what is no plain file.
Result<FileStamp> stamp_of(const std::string& path, const struct stat& info);

/// XXH3-64 of the first and the last 64 KiB, one after the other; of the whole file where they
/// would overlap. Blocks, and fails, as the reader does.
Result<std::uint64_t> ends_checksum(ByteReader& file, const CallOptions& call);

/// The fingerprint of the file that has this stamp. Blocks, and fails, as the reader does.
Result<ShardFingerprint> fingerprint_of(const FileStamp& stamp, ByteReader& file,
                                        const CallOptions& call);

/// In what a file is not what it was: "grew from 1,024 to 2,048 bytes"; nullopt where size and time
/// are the same.
std::optional<std::string> difference(const ShardFingerprint& before, const FileStamp& now);

/// The same, and whether the ends are others.
std::optional<std::string> difference(const ShardFingerprint& before, const ShardFingerprint& now);

/// The same for another look in the same run, where the file must be the same one, too.
std::optional<std::string> difference(const FileStamp& before, const FileStamp& now);

/// `conflict`, naming the file and the difference, where a file is not what it was when the run
/// began. Repeating a call does not help: the run must end, and what was indexed be indexed again.
Status check_unchanged(const std::string& path, const FileStamp& before, const FileStamp& now);

}  // namespace batchloom::sources
