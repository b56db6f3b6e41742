// SPDX-License-Identifier: Apache-2.0
#include "batchloom/client/state_text.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <vector>

#include "batchloom/base/hash.h"

namespace batchloom::client {
namespace {

constexpr std::string_view kName = "batchloom-state";
constexpr std::size_t kHashDigits = 16;
constexpr std::string_view kNothingDelivered = "-";
/// Name, version, stream, next step, samples hash; then, in version 2, last step and check.
constexpr std::size_t kFieldsOf1 = 5;
constexpr std::size_t kFieldsOf2 = 7;

std::vector<std::string_view> fields_of(std::string_view text) {
  std::vector<std::string_view> fields;
  for (;;) {
    const std::size_t end = text.find(' ');
    fields.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return fields;
    text.remove_prefix(end + 1);
  }
}

/// All of `text`. Another spelling than that of to_text() is seen when it is written again.
std::optional<std::uint64_t> parse_number(std::string_view text, int base) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<store::StreamUuid> parse_uuid(std::string_view digits) {
  store::StreamUuid uuid;
  if (digits.size() != 2 * uuid.bytes.size()) return std::nullopt;
  for (std::size_t i = 0; i < uuid.bytes.size(); ++i) {
    const auto byte = parse_number(digits.substr(2 * i, 2), 16);
    if (!byte) return std::nullopt;
    uuid.bytes[i] = static_cast<std::byte>(*byte);
  }
  return uuid;
}

std::optional<DeliveredStep> parse_delivered(std::string_view field) {
  const std::size_t colon = field.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const auto step = parse_number(field.substr(0, colon), 10);
  const auto digest = parse_number(field.substr(colon + 1), 16);
  if (!step || !digest) return std::nullopt;
  return DeliveredStep{Step(*step), *digest};
}

/// Of what both versions have.
std::optional<ConsumerState> parse(const std::vector<std::string_view>& fields) {
  if (fields.size() < kFieldsOf1) return std::nullopt;
  const auto uuid = parse_uuid(fields[2]);
  const auto step = parse_number(fields[3], 10);
  const auto hash = parse_number(fields[4], 16);
  if (!uuid || !step || !hash) return std::nullopt;
  return ConsumerState{.stream = *uuid, .next_step = Step(*step), .samples_hash = *hash};
}

std::string line_of(int version, const ConsumerState& state) {
  return fmt::format("{} {} {} {} {:016x}", kName, version, state.stream.to_string(),
                     state.next_step.value, state.samples_hash);
}

std::uint64_t check_of(std::string_view line) {
  return xxh3_64(as_bytes(line));
}

std::string with_check(std::string line) {
  const std::uint64_t check = check_of(line);
  return fmt::format("{} {:016x}", line, check);
}

Status refused(std::string_view text, std::string_view why) {
  return Status::invalid(
      fmt::format("{:?} is not the state of a consumer: {}; give what a batch's state was, "
                  "unchanged",
                  text.substr(0, 160), why));
}

Result<ConsumerState> parse_version_1(std::string_view text,
                                      const std::vector<std::string_view>& fields) {
  const std::optional<ConsumerState> state = parse(fields);
  if (state && line_of(1, *state) == text) return *state;
  return refused(text, "it was changed or cut short");
}

Result<ConsumerState> parse_version_2(std::string_view text,
                                      const std::vector<std::string_view>& fields) {
  if (fields.size() != kFieldsOf2 || fields.back().size() != kHashDigits) {
    return refused(text, fmt::format("it was changed or cut short: it has {} fields of {}, and "
                                     "ends with {} digits of {}",
                                     fields.size(), kFieldsOf2, fields.back().size(), kHashDigits));
  }
  const std::uint64_t check = check_of(text.substr(0, text.size() - kHashDigits - 1));
  if (fmt::format("{:016x}", check) != fields.back()) {
    return refused(text, fmt::format("it was changed: its check is {}, and what stands before has "
                                     "{:016x}",
                                     fields.back(), check));
  }
  std::optional<ConsumerState> state = parse(fields);
  if (state && fields[5] != kNothingDelivered) {
    state->last = parse_delivered(fields[5]);
  }
  if (state && to_text(*state) == text) return *state;
  return refused(text, "no build writes it so");
}

}  // namespace

std::string to_text(const ConsumerState& state) {
  const std::string last =
      state.last ? fmt::format("{}:{:016x}", state.last->step.value, state.last->samples_digest)
                 : std::string(kNothingDelivered);
  return with_check(fmt::format("{} {}", line_of(2, state), last));
}

Result<ConsumerState> parse_state(std::string_view text) {
  const std::vector<std::string_view> fields = fields_of(text);
  if (fields.size() < 2 || fields[0] != kName) {
    return refused(text, fmt::format("it does not begin with \"{} 2 \"", kName));
  }
  if (fields[1] == "1") return parse_version_1(text, fields);
  if (fields[1] == "2") return parse_version_2(text, fields);
  return refused(text, fmt::format("it is of version {:?}, and this build reads 1 and 2; is it of "
                                   "a newer one?",
                                   fields[1]));
}

}  // namespace batchloom::client
