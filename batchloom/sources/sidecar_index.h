// SPDX-License-Identifier: Apache-2.0
// A shard's sidecar index as a file: where it lies, whether it is of use, and what it says.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "batchloom/base/status.h"
#include "batchloom/sources/fingerprint.h"
#include "batchloom/sources/record_offsets.h"
#include "batchloom/sources/sidecar_format.h"
#include "batchloom/sources/sidecar_view.h"

namespace batchloom::sources {

/// Where the index of `shard` lies: "<shard>.blidx", or, where `folder` is not empty,
/// "<folder>/<name>.<hash>.blidx", with the hash of the shard's absolute path: folders with shards
/// of equal names may share one for their indexes.
std::string sidecar_path(const std::string& shard, const std::string& folder);

/// Whether it is the name of an index.
bool is_sidecar_path(std::string_view path);

/// Ok where an index with this header is one of the shard as it is now, under these rules;
/// `not_found`, saying in what it is not, where it is to be made anew. The shard's ends are not
/// looked at: see SidecarIndex::check_ends().
Status check_current(const SidecarHeader& header, const std::string& shard, const FileStamp& now,
                     const RecordRules& rules);

/// An index that can be opened by the thousand: until a record is asked for, it holds some 300
/// bytes and no file. Then the file is mapped into memory, where it must not be changed in place or
/// cut (SidecarWriter replaces it as a whole): a reader of a mapped file that was cut dies of
/// SIGBUS. Thread-safe. Calls that say so block for as long as the disk does.
class SidecarIndex final : public RecordOffsets {
 public:
  /// Reads header and footer. Blocks. `not_found` where there is no index, or one of another
  /// version of the format; `corruption` where it is damaged, with the byte. In both cases it can
  /// be made anew. Else as stamp_of().
  static Result<std::unique_ptr<SidecarIndex>> open(std::string path);
  ~SidecarIndex() override;

  const std::string& path() const { return path_; }
  const SidecarHeader& header() const { return header_; }
  const SidecarTotals& totals() const { return totals_; }
  /// Of the index itself.
  std::uint64_t file_bytes() const { return file_bytes_; }

  /// `conflict` where the ends of the shard are others than when it was indexed, though size and
  /// time are the same. Blocks.
  Status check_ends(ByteReader& shard, const CallOptions& call) const;

  /// As those of SidecarView; the first call blocks. `conflict` where another index has taken the
  /// place of the one that was opened.
  Result<IndexedRecord> record(std::uint64_t record) const;
  Result<RecordPayload> payload(std::uint64_t record) const;

  /// RecordOffsets. A place that cannot be told, because record() has an error, lies beyond the end
  /// of every shard: ask record() before.
  std::uint64_t count() const override { return totals_.records; }
  RecordPlace place(std::uint64_t number) const override;

 private:
  class Mapping;

  explicit SidecarIndex(std::string path) : path_(std::move(path)) {}

  Result<const SidecarView*> view() const;

  const std::string path_;
  SidecarHeader header_;
  SidecarTotals totals_;
  std::uint64_t file_bytes_ = 0;
  mutable std::atomic<const Mapping*> mapping_ = nullptr;  ///< Owned.
};

}  // namespace batchloom::sources
