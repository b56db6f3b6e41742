// SPDX-License-Identifier: Apache-2.0
#include "batchloom/sources/tar_archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>
#include <locale.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "batchloom/sources/faults.h"

namespace batchloom::sources {
namespace {

constexpr std::size_t kFeedBytes = 64 << 10;
constexpr std::uint64_t kTarBlockBytes = 512;

/// For its lifetime, libarchive takes the names of this thread as bytes, whatever the host has set.
class NamesAsBytes {
 public:
  NamesAsBytes() : before_(uselocale(bytes())) {}
  ~NamesAsBytes() { uselocale(before_); }
  NamesAsBytes(const NamesAsBytes&) = delete;
  NamesAsBytes& operator=(const NamesAsBytes&) = delete;

 private:
  /// Made once, for the process.
  static locale_t bytes() {
    static const locale_t locale = newlocale(LC_ALL_MASK, "C", nullptr);
    return locale;
  }

  const locale_t before_;
};

TarMemberKind kind_of(archive_entry* entry) {
  if (archive_entry_hardlink(entry) != nullptr) return TarMemberKind::kOther;
  switch (archive_entry_filetype(entry)) {
    case AE_IFREG: return TarMemberKind::kFile;
    case AE_IFDIR: return TarMemberKind::kFolder;
    default: return TarMemberKind::kOther;
  }
}

}  // namespace

/// What libarchive reads, and what was seen of it.
class TarArchive::Feed {
 public:
  explicit Feed(ByteStream& content) : content_(content) {}

  std::string_view name() const { return content_.name(); }

  void set_call(const CallOptions& call) { call_ = &call; }

  la_ssize_t read(const void** out) {
    if (buffer_.empty()) buffer_.resize(kFeedBytes);
    const auto size = content_.read(buffer_, *call_);
    if (!size.is_ok()) {
      failed_ = size.status();
      return ARCHIVE_FATAL;
    }
    const ByteSpan chunk = std::span(buffer_).first(*size);
    const auto last = std::find_if(chunk.rbegin(), chunk.rend(),
                                   [](std::byte byte) { return byte != std::byte{0}; });
    if (last != chunk.rend()) {
      data_end_ = offset_ + static_cast<std::uint64_t>(chunk.rend() - last);
    }
    offset_ += *size;
    *out = chunk.data();
    return static_cast<la_ssize_t>(*size);
  }

  la_int64_t skip(la_int64_t bytes) {
    const std::uint64_t skipped = content_.skip(static_cast<std::uint64_t>(bytes));
    offset_ += skipped;
    return static_cast<la_int64_t>(skipped);
  }

  /// Reads what is left.
  Status drain() {
    for (std::uint64_t before = ~offset_; before != offset_;) {
      before = offset_;
      const void* chunk = nullptr;
      if (read(&chunk) < 0) return failed_;
    }
    return Status::ok();
  }

  std::uint64_t offset() const { return offset_; }
  /// Behind the last byte that was read and is not zero.
  std::uint64_t data_end() const { return data_end_; }
  /// Why read() could not; ok if it could.
  Status take_failure() { return std::exchange(failed_, Status::ok()); }

 private:
  ByteStream& content_;
  const CallOptions* call_ = nullptr;
  Bytes buffer_;
  std::uint64_t offset_ = 0;
  std::uint64_t data_end_ = 0;
  Status failed_;
};

class TarArchive::Libarchive {
 public:
  Libarchive(ByteStream& content, TarExtent extent, std::uint64_t begin)
      : feed_(content), extent_(extent), begin_(begin) {}
  ~Libarchive() { archive_read_free(archive_); }
  Libarchive(const Libarchive&) = delete;
  Libarchive& operator=(const Libarchive&) = delete;

  /// False: no memory.
  bool set_up() {
    archive_ = archive_read_new();
    return archive_ != nullptr && archive_read_support_format_tar(archive_) == ARCHIVE_OK &&
           archive_read_set_read_callback(archive_, read_more) == ARCHIVE_OK &&
           archive_read_set_skip_callback(archive_, skip_some) == ARCHIVE_OK &&
           archive_read_set_callback_data(archive_, &feed_) == ARCHIVE_OK;
  }

  Result<std::optional<TarMember>> next(const CallOptions& call) {
    const NamesAsBytes names_as_bytes;
    feed_.set_call(call);
    if (!std::exchange(opened_, true) && archive_read_open1(archive_) != ARCHIVE_OK) {
      return fault();
    }
    archive_entry* entry = nullptr;
    const int outcome = archive_read_next_header(archive_, &entry);
    BL_RETURN_IF_ERROR(feed_.take_failure());
    const la_int64_t position = archive_read_header_position(archive_);
    if (position < 0) return fault_at(feed_.offset(), error_text());  // It gave up: so far it came.
    offset_ = static_cast<std::uint64_t>(position);
    if (outcome == ARCHIVE_EOF) {
      BL_RETURN_IF_ERROR(check_end());
      return std::optional<TarMember>();
    }
    if (outcome != ARCHIVE_OK && !(outcome == ARCHIVE_WARN && is_about_charset())) return fault();
    const char* const path = archive_entry_pathname(entry);
    if (path == nullptr) return fault_at(offset_, "a member without a name");
    const la_int64_t size = archive_entry_size(entry);
    if (size < 0) return fault_at(offset_, "a member of a negative size");
    return std::optional(TarMember{.path = path,
                                   .kind = kind_of(entry),
                                   .size_bytes = static_cast<std::uint64_t>(size),
                                   .header_offset = begin_ + offset_});
  }

  Status read(std::span<std::byte> out, const CallOptions& call) {
    feed_.set_call(call);
    while (!out.empty()) {
      const la_ssize_t size = archive_read_data(archive_, out.data(), out.size());
      BL_RETURN_IF_ERROR(feed_.take_failure());
      if (size < 0) return fault();
      if (size == 0) return fault_at(offset_, "a member ends before its size says");
      out = out.subspan(static_cast<std::size_t>(size));
    }
    return Status::ok();
  }

  std::uint64_t offset() const { return begin_ + offset_; }

 private:
  static la_ssize_t read_more(archive*, void* feed, const void** out) {
    return static_cast<Feed*>(feed)->read(out);
  }
  static la_int64_t skip_some(archive*, void* feed, la_int64_t bytes) {
    return static_cast<Feed*>(feed)->skip(bytes);
  }

  /// Of a name that is no UTF-8 where pax wants it: then its bytes are taken as they are.
  bool is_about_charset() const {
    return error_text().find("can't be converted") != error_text().npos;
  }

  std::string_view error_text() const {
    const char* const text = archive_error_string(archive_);
    return text == nullptr ? "no tar" : text;
  }

  Status check_end() {
    if (extent_ == TarExtent::kMembers) return Status::ok();
    if (feed_.offset() < offset_ + kTarBlockBytes) {
      return fault_at(offset_, "the file ends without the mark of an archive's end: it was cut");
    }
    BL_RETURN_IF_ERROR(feed_.drain());
    if (feed_.data_end() <= offset_) return Status::ok();
    return fault_at(offset_,
                    "the archive ends here, and something follows: of archives that were put "
                    "together, tar reads the first only");
  }

  Status fault() {
    BL_RETURN_IF_ERROR(feed_.take_failure());
    if (archive_errno(archive_) == ENOMEM) {
      return Status::exhausted(fmt::format("{}: no memory to read a tar", feed_.name()));
    }
    return fault_at(offset_, error_text());
  }

  Status fault_at(std::uint64_t offset, std::string_view what) const {
    return shard_fault(feed_.name(), begin_ + offset, fmt::format("tar: {}", what));
  }

  Feed feed_;
  const TarExtent extent_;
  const std::uint64_t begin_;
  archive* archive_ = nullptr;
  bool opened_ = false;
  std::uint64_t offset_ = 0;  ///< Of the last header, from begin_.
};

TarArchive::TarArchive(std::unique_ptr<Libarchive> libarchive)
    : libarchive_(std::move(libarchive)) {}
TarArchive::~TarArchive() = default;

Result<std::unique_ptr<TarArchive>> TarArchive::open(ByteStream& content, TarExtent extent,
                                                     std::uint64_t offset) {
  auto libarchive = std::make_unique<Libarchive>(content, extent, offset);
  if (!libarchive->set_up()) {
    return Status::exhausted(fmt::format("{}: no memory to read a tar", content.name()));
  }
  return std::unique_ptr<TarArchive>(new TarArchive(std::move(libarchive)));
}

Result<std::optional<TarMember>> TarArchive::next(const CallOptions& call) {
  return libarchive_->next(call);
}

Status TarArchive::read(const TarMember& member, std::size_t padding_bytes, Bytes& out,
                        const CallOptions& call) {
  out.assign(member.size_bytes + padding_bytes, std::byte{0});
  return libarchive_->read(std::span(out).first(member.size_bytes), call);
}

std::uint64_t TarArchive::offset() const {
  return libarchive_->offset();
}

}  // namespace batchloom::sources
