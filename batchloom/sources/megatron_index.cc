// SPDX-License-Identifier: Apache-2.0
#include "batchloom/sources/megatron_index.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "batchloom/base/bytes.h"
#include "batchloom/sources/faults.h"

namespace batchloom::sources {
namespace {

constexpr std::string_view kIndexMagic("MMIDIDX\0\0", 9);
constexpr std::size_t kIndexVersionAt = kIndexMagic.size();
constexpr std::size_t kIndexTypeAt = kIndexVersionAt + 8;
constexpr std::size_t kIndexCountsAt = kIndexTypeAt + 1;
constexpr std::size_t kIndexHeadBytes = kIndexCountsAt + 16;

constexpr std::size_t kLengthBytes = 4;
constexpr std::size_t kPointerBytes = 8;
constexpr std::size_t kBoundBytes = 8;
constexpr std::size_t kModeBytes = 1;
constexpr std::size_t kListBufferBytes = 64 << 10;

/// Of those numbers that stand for types, the floating-point ones.
constexpr unsigned kF64 = 6;
constexpr unsigned kF32 = 7;

bool is_known(unsigned type) {
  return (type >= 1 && type <= 5) || type == 8;
}

}  // namespace

std::uint32_t width_bytes(MegatronType type) {
  switch (type) {
    case MegatronType::kU8:
    case MegatronType::kI8: return 1;
    case MegatronType::kI16:
    case MegatronType::kU16: return 2;
    case MegatronType::kI32: return 4;
    case MegatronType::kI64: return 8;
  }
  return 1;
}

/// Consecutive entries of one of the file's lists, read through a buffer.
class MegatronIndex::List {
 public:
  struct Place {
    std::uint64_t offset;  ///< Of the first entry that is asked for.
    std::uint64_t count;
    std::size_t width;
  };

  List(ByteReader& file, const Place& place) : file_(file), place_(place) {}

  /// Where the entry lies that next() gave.
  std::uint64_t offset() const { return place_.offset + (given_ - 1) * place_.width; }

  /// Precondition: fewer than `count` were given.
  Result<std::int64_t> next(const CallOptions& call) {
    if (used_ == buffer_.size()) BL_RETURN_IF_ERROR(fill(call));
    const std::byte* const at = &buffer_[used_];
    used_ += place_.width;
    ++given_;
    if (place_.width == kModeBytes) return static_cast<std::int8_t>(load_le<std::uint8_t>(at));
    if (place_.width == kLengthBytes) return static_cast<std::int32_t>(load_le<std::uint32_t>(at));
    return static_cast<std::int64_t>(load_le<std::uint64_t>(at));
  }

 private:
  Status fill(const CallOptions& call) {
    const std::uint64_t left = place_.count - given_;
    buffer_.resize(std::min<std::uint64_t>(left, kListBufferBytes / place_.width) * place_.width);
    used_ = 0;
    return file_.read_at(place_.offset + given_ * place_.width, buffer_, call);
  }

  ByteReader& file_;
  Place place_;
  std::uint64_t given_ = 0;
  Bytes buffer_;
  std::size_t used_ = 0;
};

/// Consecutive sequences, whose places must follow from their lengths.
class MegatronIndex::Sequences {
 public:
  Sequences(const MegatronIndex& index, std::uint64_t first, std::uint64_t end)
      : index_(index),
        number_(first),
        lengths_(*index.file_, {kIndexHeadBytes + first * kLengthBytes, end - first, kLengthBytes}),
        // One more, where there is one: it says where the last sequence ends.
        pointers_(*index.file_, {index.pointers_at() + first * kPointerBytes,
                                 std::min(end + 1, index.sequences_) - first, kPointerBytes}) {
    if (index.has_modes_)
      modes_.emplace(*index.file_, List::Place{index.modes_at() + first, end - first, kModeBytes});
  }

  /// Adds the next sequence to `document`.
  Status add_to(MegatronDocument& document, const CallOptions& call) {
    if (!end_known_) BL_RETURN_IF_ERROR(read_pointer(call));
    if (document.tokens == 0) document.place.offset_bytes = end_;
    BL_ASSIGN_OR_RETURN(const std::int64_t length, lengths_.next(call));
    if (length < 0) {
      return index_.fault(lengths_.offset(),
                          fmt::format("sequence {} has {} tokens", number_, length));
    }
    end_ += static_cast<std::uint64_t>(length) * width_bytes(index_.type_);
    document.tokens += static_cast<std::uint64_t>(length);
    ++number_;
    BL_RETURN_IF_ERROR(check_end(call));
    if (!modes_) return Status::ok();
    BL_ASSIGN_OR_RETURN(const std::int64_t mode, modes_->next(call));
    if (document.mode == 0) document.mode = static_cast<std::int8_t>(mode);
    return Status::ok();
  }

  /// Of the last one that was added; nullopt before the first.
  std::optional<std::uint64_t> end() const {
    return end_known_ ? std::optional(end_) : std::nullopt;
  }

 private:
  /// Of the first sequence: it is where it says, and the next ones say whether that can be.
  Status read_pointer(const CallOptions& call) {
    BL_ASSIGN_OR_RETURN(const std::int64_t pointer, pointers_.next(call));
    end_ = static_cast<std::uint64_t>(pointer);
    end_known_ = true;
    if (end_ <= index_.data_bytes_) return Status::ok();
    return index_.fault(pointers_.offset(),
                        fmt::format("sequence {} begins at {}; the data end at {}", number_,
                                    pointer, index_.data_bytes_));
  }
  Status check_end(const CallOptions& call) {
    if (number_ == index_.sequences_) {
      if (end_ == index_.data_bytes_) return Status::ok();
      return index_.fault(index_.bounds_at() - kPointerBytes,
                          fmt::format("the last sequence ends at {} by its place and its length; "
                                      "the data end at {}",
                                      end_, index_.data_bytes_));
    }
    BL_ASSIGN_OR_RETURN(const std::int64_t pointer, pointers_.next(call));
    if (static_cast<std::uint64_t>(pointer) == end_) return Status::ok();
    return index_.fault(
        pointers_.offset(),
        fmt::format("sequence {} begins at {}; by its place and its length, the one before ends "
                    "at {}",
                    number_, pointer, end_));
  }

  const MegatronIndex& index_;
  std::uint64_t number_;   ///< Of the next sequence.
  std::uint64_t end_ = 0;  ///< Of the one before, in the data.
  bool end_known_ = false;
  List lengths_;
  List pointers_;
  std::optional<List> modes_;
};

Result<MegatronIndex> MegatronIndex::open(std::unique_ptr<ByteReader> file,
                                          const CallOptions& call) {
  MegatronIndex index(std::move(file));
  BL_RETURN_IF_ERROR(index.read_head(call));
  BL_RETURN_IF_ERROR(index.check_size());
  BL_RETURN_IF_ERROR(index.check_ends(call));
  return index;
}

Status MegatronIndex::read_head(const CallOptions& call) {
  std::array<std::byte, kIndexHeadBytes> head{};
  const std::size_t got = std::min<std::uint64_t>(head.size(), file_->size_bytes());
  if (got == 0) return fault(0, "the file is empty; expected the index of a Megatron data set");
  BL_RETURN_IF_ERROR(file_->read_at(0, std::span(head).first(got), call));
  if (!as_text(head).starts_with(kIndexMagic.substr(0, got))) {
    return fault(0, "not the index of a Megatron data set: it would begin with MMIDIDX");
  }
  if (got < head.size()) {
    return fault(got, fmt::format("the file ends within its head of {} bytes", head.size()));
  }
  const auto version = load_le<std::uint64_t>(&head[kIndexVersionAt]);
  if (version != 1) return fault(kIndexVersionAt, fmt::format("version {}; expected 1", version));
  const auto type = std::to_integer<unsigned>(head[kIndexTypeAt]);
  if (type == kF64 || type == kF32) {
    return fault(kIndexTypeAt, fmt::format("{} as the type of an id, a floating-point one", type));
  }
  if (!is_known(type)) {
    return fault(kIndexTypeAt, fmt::format("{} as the type of an id; expected 1 to 5 or 8", type));
  }
  type_ = static_cast<MegatronType>(type);
  sequences_ = load_le<std::uint64_t>(&head[kIndexCountsAt]);
  bounds_ = load_le<std::uint64_t>(&head[kIndexCountsAt + 8]);
  return Status::ok();
}

Status MegatronIndex::check_size() {
  __extension__ using Wide = unsigned __int128;
  const Wide needed = Wide{sequences_} * (kLengthBytes + kPointerBytes) +
                      Wide{bounds_} * kBoundBytes + kIndexHeadBytes;
  const Wide size = file_->size_bytes();
  has_modes_ = sequences_ > 0 && size == needed + sequences_;
  if (size == needed || has_modes_) {
    if (bounds_ > 0) return Status::ok();
    return fault(kIndexCountsAt + 8,
                 "no bounds of documents; expected at least the first, which is 0");
  }
  return fault(file_->size_bytes(),
               fmt::format("the file ends {}: {} sequences and {} bounds of documents, which it "
                           "states at offset {}, take {} bytes",
                           size < needed ? "too early" : "too late", sequences_, bounds_,
                           kIndexCountsAt, size < needed ? "more" : "fewer"));
}

Status MegatronIndex::check_ends(const CallOptions& call) {
  List first(*file_, {bounds_at(), 1, kBoundBytes});
  List last(*file_, {modes_at() - kBoundBytes, 1, kBoundBytes});
  BL_ASSIGN_OR_RETURN(const std::int64_t first_bound, first.next(call));
  BL_ASSIGN_OR_RETURN(const std::int64_t last_bound, last.next(call));
  if (first_bound != 0) {
    return fault(first.offset(),
                 fmt::format("the first document begins at sequence {}; expected 0", first_bound));
  }
  if (static_cast<std::uint64_t>(last_bound) != sequences_) {
    return fault(last.offset(), fmt::format("the last document ends at sequence {}; there are {}",
                                            last_bound, sequences_));
  }
  if (sequences_ == 0) return Status::ok();

  List first_pointer(*file_, {pointers_at(), 1, kPointerBytes});
  List last_pointer(*file_, {bounds_at() - kPointerBytes, 1, kPointerBytes});
  List last_length(*file_, {pointers_at() - kLengthBytes, 1, kLengthBytes});
  BL_ASSIGN_OR_RETURN(const std::int64_t begin, first_pointer.next(call));
  BL_ASSIGN_OR_RETURN(const std::int64_t pointer, last_pointer.next(call));
  BL_ASSIGN_OR_RETURN(const std::int64_t length, last_length.next(call));
  if (begin != 0) {
    return fault(first_pointer.offset(),
                 fmt::format("the first sequence begins at {}; expected 0", begin));
  }
  if (pointer < 0 || length < 0) {
    return fault(last_pointer.offset(),
                 fmt::format("the last sequence begins at {} and has {} tokens", pointer, length));
  }
  data_bytes_ =
      static_cast<std::uint64_t>(pointer) + static_cast<std::uint64_t>(length) * width_bytes(type_);
  return Status::ok();
}

Status MegatronIndex::check_bounds(std::uint64_t number, std::int64_t first,
                                   std::int64_t end) const {
  if (first >= 0 && first <= end && static_cast<std::uint64_t>(end) <= sequences_) {
    return Status::ok();
  }
  return fault(bounds_at() + number * kBoundBytes,
               fmt::format("document {} begins at sequence {} and ends at {}; there are {}", number,
                           first, end, sequences_));
}

Result<MegatronDocument> MegatronIndex::document(std::uint64_t number, const CallOptions& call) {
  List bounds(*file_, {bounds_at() + number * kBoundBytes, 2, kBoundBytes});
  BL_ASSIGN_OR_RETURN(const std::int64_t first, bounds.next(call));
  BL_ASSIGN_OR_RETURN(const std::int64_t end, bounds.next(call));
  BL_RETURN_IF_ERROR(check_bounds(number, first, end));
  if (first == end) return empty_document(static_cast<std::uint64_t>(first), call);
  MegatronDocument document;
  Sequences sequences(*this, static_cast<std::uint64_t>(first), static_cast<std::uint64_t>(end));
  for (std::int64_t i = first; i < end; ++i) BL_RETURN_IF_ERROR(sequences.add_to(document, call));
  document.place.size_bytes = document.tokens * width_bytes(type_);
  return document;
}

Result<MegatronDocument> MegatronIndex::empty_document(std::uint64_t sequence,
                                                       const CallOptions& call) const {
  MegatronDocument before;
  if (sequence > 0) {
    BL_RETURN_IF_ERROR(Sequences(*this, sequence - 1, sequence).add_to(before, call));
  }
  return MegatronDocument{
      .place = {.offset_bytes = before.place.offset_bytes + before.tokens * width_bytes(type_),
                .size_bytes = 0},
      .tokens = 0,
      .mode = 0};
}

Status MegatronIndex::scan(const CallOptions& call,
                           const std::function<Status(const MegatronDocument&)>& found) {
  Documents all(*this, 0);
  while (all.number() < documents()) {
    BL_ASSIGN_OR_RETURN(const MegatronDocument document, all.next(call));
    BL_RETURN_IF_ERROR(found(document));
  }
  return Status::ok();
}

MegatronIndex::Documents::Documents(const MegatronIndex& index, std::uint64_t first)
    : index_(index), number_(first) {}

MegatronIndex::Documents::~Documents() = default;

Result<MegatronDocument> MegatronIndex::Documents::next(const CallOptions& call) {
  if (bounds_ == nullptr) BL_RETURN_IF_ERROR(begin(call));
  BL_ASSIGN_OR_RETURN(const std::int64_t end, bounds_->next(call));
  BL_RETURN_IF_ERROR(index_.check_bounds(number_++, sequence_, end));
  if (end == sequence_) {
    const auto before = sequences_ == nullptr ? std::nullopt : sequences_->end();
    if (!before) return index_.empty_document(static_cast<std::uint64_t>(end), call);
    return MegatronDocument{
        .place = {.offset_bytes = *before, .size_bytes = 0}, .tokens = 0, .mode = 0};
  }
  // The sequences of all documents to come follow each other.
  if (sequences_ == nullptr) {
    sequences_ = std::make_unique<Sequences>(index_, static_cast<std::uint64_t>(sequence_),
                                             index_.sequences_);
  }
  MegatronDocument document;
  for (; sequence_ < end; ++sequence_) BL_RETURN_IF_ERROR(sequences_->add_to(document, call));
  document.place.size_bytes = document.tokens * width_bytes(index_.type_);
  return document;
}

Status MegatronIndex::Documents::begin(const CallOptions& call) {
  bounds_ = std::make_unique<List>(*index_.file_,
                                   List::Place{.offset = index_.bounds_at() + number_ * kBoundBytes,
                                               .count = index_.bounds_ - number_,
                                               .width = kBoundBytes});
  BL_ASSIGN_OR_RETURN(sequence_, bounds_->next(call));
  return Status::ok();
}

std::uint64_t MegatronIndex::pointers_at() const {
  return kIndexHeadBytes + sequences_ * kLengthBytes;
}
std::uint64_t MegatronIndex::bounds_at() const {
  return pointers_at() + sequences_ * kPointerBytes;
}
std::uint64_t MegatronIndex::modes_at() const {
  return bounds_at() + bounds_ * kBoundBytes;
}
Status MegatronIndex::fault(std::uint64_t offset, std::string_view what) const {
  return shard_fault(file_->name(), offset, what);
}

}  // namespace batchloom::sources
