// SPDX-License-Identifier: Apache-2.0
#include "batchloom/sources/sidecar_index.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <span>
#include <utility>

#include "batchloom/base/hash.h"
#include "batchloom/objstore/file_ops.h"
#include "batchloom/objstore/posix_fd.h"
#include "batchloom/sources/faults.h"
#include "batchloom/sources/mapped_file.h"

namespace batchloom::sources {
namespace {

constexpr std::string_view kSidecarEnding = ".blidx";
constexpr std::string_view kIndexWhat = "index";

Status read_fixed(const std::string& path, const objstore::Fd& fd, std::uint64_t offset,
                  std::span<std::byte> out) {
  const ssize_t count = objstore::retry_interrupted(
      [&] { return pread(fd.get(), out.data(), out.size(), static_cast<off_t>(offset)); });
  if (count < 0) return objstore::file_error(errno, "read", path);
  if (static_cast<std::size_t>(count) == out.size()) return Status::ok();
  return shard_fault(path, offset + static_cast<std::uint64_t>(count), "cut off while it was read");
}

Status outdated(const std::string& shard, std::string_view why) {
  return Status::not_found(fmt::format("the index of {} is outdated: {}", shard, why));
}

/// Blocks are checked when they are read: then nobody makes the index anew by himself.
template <class Value>
Result<Value> with_remedy(const std::string& path, Result<Value> read) {
  if (!read.is(ErrorKind::kCorruption)) return read;
  return Status::corruption(
      fmt::format("{}; it is an index and no data: remove {}, and the next run makes it anew",
                  read.status().message(), path));
}

}  // namespace

/// The file in memory.
class SidecarIndex::Mapping {
 public:
  static Result<std::unique_ptr<Mapping>> create(const std::string& path) {
    BL_ASSIGN_OR_RETURN(auto file, MappedFile::open(path, kIndexWhat));
    BL_ASSIGN_OR_RETURN(SidecarView view, SidecarView::open(path, file->bytes()));
    return std::make_unique<Mapping>(std::move(file), std::move(view));
  }
  Mapping(std::unique_ptr<MappedFile> file, SidecarView view)
      : file_(std::move(file)), view_(std::move(view)) {}

  const SidecarView& view() const { return view_; }

 private:
  std::unique_ptr<MappedFile> file_;
  SidecarView view_;
};

bool is_sidecar_path(std::string_view path) {
  return path.ends_with(kSidecarEnding);
}

std::string sidecar_path(const std::string& shard, const std::string& folder) {
  if (folder.empty()) return fmt::format("{}{}", shard, kSidecarEnding);
  const std::filesystem::path absolute = std::filesystem::absolute(shard).lexically_normal();
  return fmt::format("{}/{}.{:016x}{}", folder, absolute.filename().string(),
                     xxh3_64(as_bytes(absolute.string())), kSidecarEnding);
}

Status check_current(const SidecarHeader& header, const std::string& shard, const FileStamp& now,
                     const RecordRules& rules) {
  if (const auto what = difference(header.shard, now)) {
    return outdated(shard, fmt::format("the file {} since it was indexed", *what));
  }
  if (header.rules.tokenizer_digest != rules.tokenizer_digest) {
    return outdated(shard, fmt::format("it was made with another tokenizer ({:016x}, now {:016x})",
                                       header.rules.tokenizer_digest, rules.tokenizer_digest));
  }
  if (header.rules.fields_digest != rules.fields_digest) {
    return outdated(shard, fmt::format("it was made for other fields, or for the loss on other "
                                       "labels ({:016x}, now {:016x})",
                                       header.rules.fields_digest, rules.fields_digest));
  }
  return Status::ok();
}

Result<std::unique_ptr<SidecarIndex>> SidecarIndex::open(std::string path) {
  std::unique_ptr<SidecarIndex> index(new SidecarIndex(std::move(path)));
  const std::string& name = index->path_;
  BL_ASSIGN_OR_RETURN(const SizedFile file, open_sized(name, kIndexWhat));
  if (file.size_bytes < kSidecarHeaderBytes + kSidecarFooterBytes) {
    return shard_fault(name, file.size_bytes, "cut off: header and footer are not there");
  }
  HeaderBytes header;
  FooterBytes footer;
  BL_RETURN_IF_ERROR(read_fixed(name, file.fd, 0, header));
  BL_ASSIGN_OR_RETURN(index->header_, decode_header(name, header));
  BL_RETURN_IF_ERROR(read_fixed(name, file.fd, file.size_bytes - footer.size(), footer));
  const FooterPlace place{.file_bytes = file.size_bytes,
                          .header_crc = stated_header_crc(header),
                          .block_records = index->header_.block_records};
  BL_ASSIGN_OR_RETURN(const SidecarFooter decoded, decode_footer(name, place, footer));
  index->totals_ = decoded.totals;
  index->file_bytes_ = file.size_bytes;
  return index;
}

SidecarIndex::~SidecarIndex() {
  delete mapping_.load();
}

Status SidecarIndex::check_ends(ByteReader& shard, const CallOptions& call) const {
  BL_ASSIGN_OR_RETURN(const std::uint64_t checksum, ends_checksum(shard, call));
  ShardFingerprint now = header_.shard;
  now.ends_checksum = checksum;
  const auto what = difference(header_.shard, now);
  if (!what) return Status::ok();
  return Status::conflict(fmt::format("{} {}: index it again and start anew", shard.name(), *what));
}

Result<const SidecarView*> SidecarIndex::view() const {
  if (const Mapping* mapping = mapping_.load(std::memory_order_acquire)) return &mapping->view();
  BL_ASSIGN_OR_RETURN(std::unique_ptr<Mapping> mapping, Mapping::create(path_));
  if (mapping->view().header() != header_ || mapping->view().totals() != totals_) {
    return Status::conflict(fmt::format(
        "{}: the index was replaced by another one during this run: start anew", path_));
  }
  // Another thread may have been faster; then its mapping stays.
  const Mapping* expected = nullptr;
  if (mapping_.compare_exchange_strong(expected, mapping.get(), std::memory_order_acq_rel)) {
    return &mapping.release()->view();
  }
  return &expected->view();
}

Result<IndexedRecord> SidecarIndex::record(std::uint64_t record) const {
  BL_ASSIGN_OR_RETURN(const SidecarView* const mapped, view());
  return with_remedy(path_, mapped->record(record));
}

Result<RecordPayload> SidecarIndex::payload(std::uint64_t record) const {
  BL_ASSIGN_OR_RETURN(const SidecarView* const mapped, view());
  return with_remedy(path_, mapped->payload(record));
}

RecordPlace SidecarIndex::place(std::uint64_t number) const {
  const auto indexed = record(number);
  if (indexed.is_ok()) return indexed->size.place;
  return {.offset_bytes = UINT64_MAX, .size_bytes = 1};
}

}  // namespace batchloom::sources
