// SPDX-License-Identifier: Apache-2.0
// Stored memberships: docs/formats/membership.md.
#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "batchloom/control/membership.h"

namespace batchloom::control {
namespace {

constexpr std::string_view kMark = "BLMB";
constexpr std::uint16_t kMembershipVersion = 1;
constexpr std::size_t kTextBegin = kMark.size() + sizeof(std::uint16_t);
constexpr std::size_t kCrcBytes = sizeof(std::uint32_t);
constexpr std::string_view kEquals = " = ";

Status damaged(std::string_view reason) {
  return Status::corruption(fmt::format("membership: {}", reason));
}

Status damaged_line(std::size_t line, std::string_view reason) {
  return damaged(fmt::format("line {}: {}", line, reason));
}

Status check_membership_frame(ByteSpan bytes) {
  if (bytes.size() < kTextBegin + kCrcBytes) {
    return damaged(fmt::format("{} bytes; at least {}", bytes.size(), kTextBegin + kCrcBytes));
  }
  if (bytes.size() > kMembershipMaxBytes) {
    return damaged(fmt::format("{} bytes; at most {}", bytes.size(), kMembershipMaxBytes));
  }
  if (as_text(bytes.first(kMark.size())) != kMark) return damaged("byte 0: another mark");
  const auto version = load_le<std::uint16_t>(bytes.data() + kMark.size());
  if (version != kMembershipVersion) {
    return Status::invalid(fmt::format("membership: version {}, and this build knows {}; upgrade",
                                       version, kMembershipVersion));
  }
  const std::size_t crc_begin = bytes.size() - kCrcBytes;
  if (crc32c(bytes.first(crc_begin)) != load_le<std::uint32_t>(bytes.data() + crc_begin)) {
    return damaged(fmt::format("byte {}: the CRC is another one", crc_begin));
  }
  return Status::ok();
}

Result<MembershipLine> parse_line(std::size_t number, std::string_view line) {
  const bool plain = std::ranges::none_of(
      line, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
  if (!plain) return damaged_line(number, "a control character");
  const std::size_t equals = line.find(kEquals);
  if (equals == std::string_view::npos || equals == 0) return damaged_line(number, "no key");
  const std::string_view value = line.substr(equals + kEquals.size());
  if (value.empty()) return damaged_line(number, "no value");
  return MembershipLine{std::string(line.substr(0, equals)), std::string(value)};
}

}  // namespace

Result<Bytes> encode_membership(const Membership& membership) {
  const std::string text = membership.text();
  Bytes bytes = to_bytes(kMark);
  bytes.resize(kTextBegin);
  store_le(kMembershipVersion, bytes.data() + kMark.size());
  bytes.insert(bytes.end(), as_bytes(text).begin(), as_bytes(text).end());
  const std::uint32_t crc = crc32c(bytes);
  bytes.resize(bytes.size() + kCrcBytes);
  store_le(crc, bytes.data() + bytes.size() - kCrcBytes);
  if (bytes.size() <= kMembershipMaxBytes) return bytes;
  return Status::exhausted(
      fmt::format("membership: {} lines take {} bytes, and at most {} can be stored; use fewer, "
                  "larger files",
                  membership.lines().size(), bytes.size(), kMembershipMaxBytes));
}

Result<Membership> decode_membership(ByteSpan bytes) {
  BL_RETURN_IF_ERROR(check_membership_frame(bytes));
  std::string_view text = as_text(bytes.subspan(kTextBegin, bytes.size() - kTextBegin - kCrcBytes));
  std::vector<MembershipLine> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::size_t number = lines.size() + 1;
    if (end == std::string_view::npos) return damaged_line(number, "it does not end");
    BL_ASSIGN_OR_RETURN(MembershipLine line, parse_line(number, text.substr(0, end)));
    if (!lines.empty() && line.key <= lines.back().key) {
      return damaged_line(number, "its key does not ascend");
    }
    lines.push_back(std::move(line));
    text.remove_prefix(end + 1);
  }
  return Membership(std::move(lines));
}

}  // namespace batchloom::control
