// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace batchloom::store {
namespace {

constexpr std::size_t kSlotDigits = 20;
constexpr std::size_t kTermDigits = 12;
constexpr std::size_t kSeqDigits = 12;
constexpr std::size_t kNonceDigits = 16;
constexpr std::size_t kNameMaxBytes = 63;
constexpr std::string_view kLiveName = "live";

constexpr DataKind kDataKinds[] = {DataKind::kBatch, DataKind::kState, DataKind::kMembership};

std::string_view suffix_of(DataKind kind) {
  switch (kind) {
    case DataKind::kBatch: return ".tgb";
    case DataKind::kState: return ".state";
    case DataKind::kMembership: return ".membership";
  }
  return "";
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_hex_digit(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'f');
}

bool is_name_start(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z');
}

/// Takes a key apart from left to right. Each call consumes what it accepts; after the first
/// mismatch all of them return zero or nothing, and `finished` is false.
class KeyScanner {
 public:
  explicit KeyScanner(std::string_view key) : rest_(key) {}

  void literal(std::string_view text) {
    if (rest_.starts_with(text)) {
      rest_.remove_prefix(text.size());
    } else {
      fail();
    }
  }

  /// A decimal number in the one spelling with at least `width` digits.
  template <class T>
  T decimal(std::size_t width) {
    const std::string_view digits = take_while(is_digit);
    if (digits.size() < width) fail();
    if (digits.size() > width && digits.starts_with('0')) fail();
    return convert<T>(digits, 10);
  }

  /// Exactly `width` lower-case hexadecimal digits.
  std::uint64_t hex(std::size_t width) {
    const std::string_view digits = take_while(is_hex_digit);
    if (digits.size() != width) fail();
    return convert<std::uint64_t>(digits, 16);
  }

  std::string_view name() {
    return checked_name(take_while([](char c) { return c != '.' && c != '/'; }));
  }

  /// A name that ends where `size` bytes are left of the key.
  std::string_view name_before(std::size_t size) {
    const std::string_view taken = rest_.substr(0, rest_.size() - std::min(size, rest_.size()));
    rest_.remove_prefix(taken.size());
    return checked_name(taken);
  }

  /// What a data object's key ends with: the rest of it.
  DataKind data_kind() {
    for (const DataKind kind : kDataKinds) {
      if (rest_ != suffix_of(kind)) continue;
      rest_ = {};
      return kind;
    }
    fail();
    return DataKind::kBatch;
  }

  /// The whole key was consumed without a mismatch.
  bool finished() const { return !failed_ && rest_.empty(); }

 private:
  void fail() {
    failed_ = true;
    rest_ = {};
  }

  std::string_view checked_name(std::string_view taken) {
    if (!is_name(taken)) fail();
    return taken;
  }

  template <class Accept>
  std::string_view take_while(Accept accept) {
    const auto end = std::find_if_not(rest_.begin(), rest_.end(), accept);
    const std::string_view taken = rest_.substr(0, static_cast<std::size_t>(end - rest_.begin()));
    rest_.remove_prefix(taken.size());
    return taken;
  }

  template <class T>
  T convert(std::string_view digits, int base) {
    T value = 0;
    const char* const end = digits.data() + digits.size();
    const auto [stop, error] = std::from_chars(digits.data(), end, value, base);
    if (error != std::errc() || stop != end) fail();
    return value;
  }

  std::string_view rest_;
  bool failed_ = false;
};

std::uint64_t top_byte(Nonce nonce) {
  return nonce.value >> 56;
}

}  // namespace

std::string manifest_key(Slot slot) {
  return fmt::format("{}{:0{}}", kManifestPrefix, slot.value, kSlotDigits);
}

std::string segment_key(const SegmentName& name) {
  return fmt::format("{}{:0{}}-{}-{:0{}x}", kSegmentPrefix, name.slot.value, kSlotDigits,
                     name.level, name.nonce.value, kNonceDigits);
}

std::string data_key(const DataName& name) {
  return fmt::format("{}{:02x}/{}.{:0{}}.{:0{}}.{:0{}x}{}", kDataPrefix, top_byte(name.nonce),
                     name.producer, name.term.value, kTermDigits, name.seq.value, kSeqDigits,
                     name.nonce.value, kNonceDigits, suffix_of(name.kind));
}

std::string pin_key(const PinName& name) {
  return fmt::format("{}{}/{}-{:0{}x}", kPinPrefix, name.group, name.id, name.nonce.value,
                     kNonceDigits);
}

std::string live_cursor_key(std::string_view group) {
  return fmt::format("{}{}/{}", kPinPrefix, group, kLiveName);
}

std::string group_prefix(std::string_view group) {
  return fmt::format("{}{}/", kPinPrefix, group);
}

std::optional<Slot> parse_manifest_key(std::string_view key) {
  KeyScanner scanner(key);
  scanner.literal(kManifestPrefix);
  const Slot slot(scanner.decimal<std::uint64_t>(kSlotDigits));
  if (!scanner.finished()) return std::nullopt;
  return slot;
}

std::optional<SegmentName> parse_segment_key(std::string_view key) {
  KeyScanner scanner(key);
  SegmentName name;
  scanner.literal(kSegmentPrefix);
  name.slot = Slot(scanner.decimal<std::uint64_t>(kSlotDigits));
  scanner.literal("-");
  name.level = scanner.decimal<std::uint32_t>(1);
  scanner.literal("-");
  name.nonce = Nonce(scanner.hex(kNonceDigits));
  if (!scanner.finished()) return std::nullopt;
  return name;
}

std::optional<DataName> parse_data_key(std::string_view key) {
  KeyScanner scanner(key);
  DataName name;
  scanner.literal(kDataPrefix);
  const std::uint64_t folder = scanner.hex(2);
  scanner.literal("/");
  name.producer = scanner.name();
  scanner.literal(".");
  name.term = Term(scanner.decimal<std::uint64_t>(kTermDigits));
  scanner.literal(".");
  name.seq = Seq(scanner.decimal<std::uint64_t>(kSeqDigits));
  scanner.literal(".");
  name.nonce = Nonce(scanner.hex(kNonceDigits));
  name.kind = scanner.data_kind();
  if (!scanner.finished() || folder != top_byte(name.nonce)) return std::nullopt;
  return name;
}

std::optional<PinName> parse_pin_key(std::string_view key) {
  KeyScanner scanner(key);
  PinName name;
  scanner.literal(kPinPrefix);
  name.group = scanner.name();
  scanner.literal("/");
  name.id = scanner.name_before(1 + kNonceDigits);
  scanner.literal("-");
  name.nonce = Nonce(scanner.hex(kNonceDigits));
  if (!scanner.finished()) return std::nullopt;
  return name;
}

std::optional<std::string> parse_live_cursor_key(std::string_view key) {
  KeyScanner scanner(key);
  scanner.literal(kPinPrefix);
  std::string group(scanner.name());
  scanner.literal("/");
  scanner.literal(kLiveName);
  if (!scanner.finished()) return std::nullopt;
  return group;
}

bool is_name(std::string_view name) {
  if (name.empty() || name.size() > kNameMaxBytes || !is_name_start(name.front())) return false;
  return std::all_of(name.begin(), name.end(),
                     [](char c) { return is_name_start(c) || c == '_' || c == '-'; });
}

Status validate_name(std::string_view what, std::string_view name) {
  if (is_name(name)) return Status::ok();
  return Status::invalid(fmt::format(
      "{} '{}' is not a name: use 1 to {} of a-z, 0-9, '_' and '-', beginning with a letter or a "
      "digit",
      what, name, kNameMaxBytes));
}

}  // namespace batchloom::store
