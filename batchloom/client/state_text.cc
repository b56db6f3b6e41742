// SPDX-License-Identifier: Apache-2.0
#include "batchloom/client/state_text.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>

namespace batchloom::client {
namespace {

constexpr std::string_view kMark = "batchloom-state 1 ";
constexpr std::size_t kUuidDigits = 32;
constexpr std::size_t kHashDigits = 16;

/// All of `text`, as to_text() writes numbers: without signs, capitals or leading zeros to spare.
std::optional<std::uint64_t> parse_number(std::string_view text, int base) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

bool parse_uuid(std::string_view digits, store::StreamUuid& uuid) {
  for (std::size_t i = 0; i < uuid.bytes.size(); ++i) {
    const auto byte = parse_number(digits.substr(2 * i, 2), 16);
    if (!byte) return false;
    uuid.bytes[i] = static_cast<std::byte>(*byte);
  }
  return true;
}

std::optional<ConsumerState> parse(std::string_view text) {
  if (!text.starts_with(kMark)) return std::nullopt;
  text.remove_prefix(kMark.size());
  if (text.size() < kUuidDigits + kHashDigits + 3) return std::nullopt;
  const std::string_view step =
      text.substr(kUuidDigits + 1, text.size() - kUuidDigits - kHashDigits - 2);
  const auto number = parse_number(step, 10);
  const auto hash = parse_number(text.substr(text.size() - kHashDigits), 16);
  ConsumerState state;
  if (!number || !hash || !parse_uuid(text.substr(0, kUuidDigits), state.stream)) {
    return std::nullopt;
  }
  state.next_step = Step(*number);
  state.samples_hash = *hash;
  return state;
}

}  // namespace

std::string to_text(const ConsumerState& state) {
  return fmt::format("{}{} {} {:016x}", kMark, state.stream.to_string(), state.next_step.value,
                     state.samples_hash);
}

Result<ConsumerState> parse_state(std::string_view text) {
  const std::optional<ConsumerState> state = parse(text);
  // Written again it is the same: what parsing let pass, a sign or capitals, is seen here.
  if (state && to_text(*state) == text) return *state;
  return Status::invalid(
      fmt::format("{:?} is not the state of a consumer, which begins with {:?}; give what a "
                  "batch's state was, unchanged",
                  text.substr(0, 80), kMark));
}

}  // namespace batchloom::client
