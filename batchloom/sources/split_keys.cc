// SPDX-License-Identifier: Apache-2.0
#include "batchloom/sources/split_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "batchloom/base/check.h"
#include "batchloom/base/hash.h"
#include "batchloom/sources/faults.h"
#include "batchloom/sources/sidecar_index.h"

namespace batchloom::sources {
namespace {

constexpr std::string_view kSplitKeysEnding = ".blkeys";
constexpr std::string_view kSplitKeysMark = "BLSK";
constexpr std::size_t kKeyBytes = 8;
constexpr std::size_t kCrcBytes = 4;

using SplitKeysHead = std::array<std::byte, kSplitKeysHeaderBytes>;

constexpr std::uint64_t blocks_of_keys(std::uint64_t records) {
  return records / kSplitKeysBlock + (records % kSplitKeysBlock != 0 ? 1 : 0);
}

SplitKeysHead encode_keys_header(const SplitKeysHeader& header) {
  SplitKeysHead bytes{};
  std::ranges::copy(as_bytes(kSplitKeysMark), bytes.begin());
  store_le(kSplitKeysVersion, &bytes[4]);
  store_le(header.shard.size_bytes, &bytes[8]);
  store_le(static_cast<std::uint64_t>(header.shard.modified_ns), &bytes[16]);
  store_le(header.shard.ends_checksum, &bytes[24]);
  store_le(header.rule_digest, &bytes[32]);
  store_le(header.records, &bytes[40]);
  store_le(crc32c(ByteSpan(bytes).first(60)), &bytes[60]);
  return bytes;
}

Result<SplitKeysHeader> decode_keys_header(const std::string& path, ByteSpan bytes) {
  if (bytes.size() < kSplitKeysHeaderBytes) {
    return shard_fault(path, bytes.size(), "cut off: the header is not there");
  }
  if (as_text(bytes.first(4)) != kSplitKeysMark) return shard_fault(path, 0, "no split keys");
  const auto version = load_le<std::uint16_t>(&bytes[4]);
  if (version != kSplitKeysVersion) {
    return Status::not_found(fmt::format("{}: split keys of format version {}; this build knows {}",
                                         path, version, kSplitKeysVersion));
  }
  if (crc32c(bytes.first(60)) != load_le<std::uint32_t>(&bytes[60])) {
    return shard_fault(path, 60, "the header does not match its CRC");
  }
  return SplitKeysHeader{
      .shard = {.size_bytes = load_le<std::uint64_t>(&bytes[8]),
                .modified_ns = static_cast<std::int64_t>(load_le<std::uint64_t>(&bytes[16])),
                .ends_checksum = load_le<std::uint64_t>(&bytes[24])},
      .rule_digest = load_le<std::uint64_t>(&bytes[32]),
      .records = load_le<std::uint64_t>(&bytes[40])};
}

/// In what keys are not those that are wanted.
std::optional<std::string> unlike(const SplitKeysHeader& there, const SplitKeysHeader& wanted) {
  if (const auto what = difference(there.shard, wanted.shard)) {
    return fmt::format("the file {} since they were made", *what);
  }
  if (there.rule_digest != wanted.rule_digest) return "they were made of something else";
  if (there.records == wanted.records) return std::nullopt;
  return fmt::format("of {} records, and there are {}", there.records, wanted.records);
}

}  // namespace

std::string split_keys_path(const std::string& shard, const std::string& index_folder) {
  std::string path = sidecar_path(shard, index_folder);
  return path.substr(0, path.rfind('.')).append(kSplitKeysEnding);
}

bool is_split_keys_path(std::string_view path) {
  return path.ends_with(kSplitKeysEnding);
}

std::uint64_t content_key(std::span<const TokenId> ids) {
  static_assert(sizeof(TokenId) == 4, "a key is made of ids of four bytes");
  return xxh3_64(std::as_bytes(ids));
}

Result<std::unique_ptr<SplitKeysWriter>> SplitKeysWriter::create(objstore::FileOps& files,
                                                                 std::string path,
                                                                 const SplitKeysHeader& header) {
  std::unique_ptr<SplitKeysWriter> writer(new SplitKeysWriter(std::move(path), header));
  auto file = ReplacedFile::create(files, writer->path_);
  if (!file.is_ok()) return file.status().with_context("write " + writer->path_);
  writer->file_ = *std::move(file);
  BL_RETURN_IF_ERROR(writer->put(encode_keys_header(header)));
  return writer;
}

Status SplitKeysWriter::put(ByteSpan bytes) {
  const Status wrote = file_->put(bytes);
  return wrote.is_ok() ? wrote : wrote.with_context("write " + path_);
}

Status SplitKeysWriter::append(std::uint64_t key) {
  const std::size_t end = block_.size();
  block_.resize(end + kKeyBytes);
  store_le(key, &block_[end]);
  ++appended_;
  return appended_ % kSplitKeysBlock == 0 ? end_block() : Status::ok();
}

Status SplitKeysWriter::end_block() {
  const std::size_t end = crcs_.size();
  crcs_.resize(end + kCrcBytes);
  store_le(crc32c(block_), &crcs_[end]);
  BL_RETURN_IF_ERROR(put(block_));
  block_.clear();
  return Status::ok();
}

Status SplitKeysWriter::finish() {
  BL_CHECK(appended_ == header_.records, "a key for each record");
  if (!block_.empty()) BL_RETURN_IF_ERROR(end_block());
  BL_RETURN_IF_ERROR(put(crcs_));
  const Status finished = file_->finish();
  return finished.is_ok() ? finished : finished.with_context("write " + path_);
}

SplitKeys::SplitKeys(std::string path, std::unique_ptr<MappedFile> file, std::uint64_t records)
    : path_(std::move(path)),
      file_(std::move(file)),
      records_(records),
      checked_(std::make_unique<std::atomic<bool>[]>(blocks_of_keys(records))) {}

Result<std::unique_ptr<SplitKeys>> SplitKeys::open(const std::string& path,
                                                   const SplitKeysHeader& expected) {
  BL_ASSIGN_OR_RETURN(auto file, MappedFile::open(path, "file of split keys"));
  BL_ASSIGN_OR_RETURN(const SplitKeysHeader header, decode_keys_header(path, file->bytes()));
  if (const auto why = unlike(header, expected)) {
    return Status::not_found(fmt::format("{}: outdated: {}", path, *why));
  }
  const std::uint64_t size = kSplitKeysHeaderBytes + header.records * kKeyBytes +
                             blocks_of_keys(header.records) * kCrcBytes;
  if (file->bytes().size() != size) {
    return shard_fault(path, std::min<std::uint64_t>(size, file->bytes().size()),
                       fmt::format("{} bytes, and {} records take {}", file->bytes().size(),
                                   header.records, size));
  }
  return std::unique_ptr<SplitKeys>(new SplitKeys(path, std::move(file), header.records));
}

Status SplitKeys::check_block(std::uint64_t block) const {
  const std::uint64_t first = block * kSplitKeysBlock;
  const std::uint64_t keys = std::min(kSplitKeysBlock, records_ - first);
  const std::uint64_t at = kSplitKeysHeaderBytes + first * kKeyBytes;
  const std::uint64_t crc_at = kSplitKeysHeaderBytes + records_ * kKeyBytes + block * kCrcBytes;
  const ByteSpan bytes = file_->bytes();
  if (crc32c(bytes.subspan(at, keys * kKeyBytes)) == load_le<std::uint32_t>(&bytes[crc_at])) {
    return Status::ok();
  }
  return shard_fault(path_, at, "split keys that do not match their CRC: remove the file");
}

Result<std::uint64_t> SplitKeys::key(std::uint64_t record) const {
  std::atomic<bool>& checked = checked_[record / kSplitKeysBlock];
  if (!checked.load(std::memory_order_relaxed)) {
    BL_RETURN_IF_ERROR(check_block(record / kSplitKeysBlock));
    checked.store(true, std::memory_order_relaxed);
  }
  return load_le<std::uint64_t>(&file_->bytes()[kSplitKeysHeaderBytes + record * kKeyBytes]);
}

}  // namespace batchloom::sources
