// SPDX-License-Identifier: Apache-2.0
#include "batchloom/sources/tar_scan.h"

#include <utility>

namespace batchloom::sources {
namespace {

/// Puts neighbours together.
class SampleGrouper {
 public:
  explicit SampleGrouper(const PlaceSink& found) : found_(found) {}

  Status add(const TarMember& member) {
    end_member(member.header_offset);
    const auto sample = sample_member(member);
    if (!sample) return Status::ok();
    if (open_ && sample->key != key_) BL_RETURN_IF_ERROR(end_record());
    if (!open_) {
      open_ = true;
      key_ = sample->key;
      place_ = {.offset_bytes = member.header_offset, .size_bytes = 0};
    }
    in_record_ = true;
    return Status::ok();
  }

  Status end(std::uint64_t offset) {
    end_member(offset);
    return open_ ? end_record() : Status::ok();
  }

 private:
  /// The last member ends at `offset`.
  void end_member(std::uint64_t offset) {
    if (std::exchange(in_record_, false)) place_.size_bytes = offset - place_.offset_bytes;
  }

  Status end_record() {
    open_ = false;
    return found_(place_);
  }

  const PlaceSink& found_;
  std::string key_;
  RecordPlace place_;
  bool open_ = false;       ///< There is a record that may get more members.
  bool in_record_ = false;  ///< The last member is one of it.
};

}  // namespace

std::string folded(std::string_view extension) {
  std::string small(extension);
  for (char& c : small) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return small;
}

std::optional<SampleMember> sample_member(const TarMember& member) {
  if (member.kind == TarMemberKind::kFolder) return std::nullopt;
  const std::string_view path = member.path;
  const std::size_t slash = path.rfind('/');
  const std::size_t base = slash == std::string_view::npos ? 0 : slash + 1;
  const std::size_t dot = path.find('.', base);
  if (dot == std::string_view::npos || dot == base) return std::nullopt;
  return SampleMember{.key = path.substr(0, dot), .extension = folded(path.substr(dot + 1))};
}

Status scan_tar(ByteStream& content, const CallOptions& call, const PlaceSink& found) {
  BL_ASSIGN_OR_RETURN(const auto archive, TarArchive::open(content, TarExtent::kWhole));
  SampleGrouper samples(found);
  while (true) {
    BL_ASSIGN_OR_RETURN(const auto member, archive->next(call));
    if (!member) return samples.end(archive->offset());
    BL_RETURN_IF_ERROR(samples.add(*member));
  }
}

}  // namespace batchloom::sources
