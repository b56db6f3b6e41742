// SPDX-License-Identifier: Apache-2.0
#include "batchloom/client/state_text.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <string>

#include "batchloom/client/client_world_testing.h"

namespace batchloom::client {
namespace {

ConsumerState some_state() {
  ConsumerState state{.stream = {}, .next_step = Step(12), .samples_hash = 0xab};
  state.stream.bytes[0] = std::byte{0x1f};
  state.last = DeliveredStep{Step(11), 0xcd};
  return state;
}

constexpr std::string_view kVersion1 =
    "batchloom-state 1 1f000000000000000000000000000000 12 00000000000000ab";

TEST(StateText, IsOneLine) {
  EXPECT_EQ(to_text(some_state()),
            "batchloom-state 2 1f000000000000000000000000000000 12 00000000000000ab "
            "11:00000000000000cd 312a9c6f0805c149");
  ConsumerState first = some_state();
  first.last.reset();
  EXPECT_EQ(to_text(first),
            "batchloom-state 2 1f000000000000000000000000000000 12 00000000000000ab - "
            "56722788a89cbd23");
}

RC_GTEST_PROP(StateText, ComesBack,
              (const std::array<std::uint8_t, 16>& uuid, std::uint64_t step, std::uint64_t hash,
               bool delivered)) {
  ConsumerState state{.stream = {}, .next_step = Step(step), .samples_hash = hash};
  std::ranges::transform(uuid, state.stream.bytes.begin(),
                         [](std::uint8_t byte) { return std::byte{byte}; });
  if (delivered) state.last = DeliveredStep{Step(step / 2), ~hash};
  const auto parsed = parse_state(to_text(state));
  RC_ASSERT(parsed.is_ok());
  RC_ASSERT(*parsed == state);
}

TEST(StateText, OfVersion1IsRead) {
  ConsumerState state = some_state();
  state.last.reset();
  EXPECT_EQ(parse_state(kVersion1).value(), state);
}

/// All that a slip may make of it, but longer digits of a number.
void expect_nothing_else(const std::string& right) {
  for (std::size_t size = 0; size < right.size(); ++size) {
    EXPECT_TRUE(parse_state(right.substr(0, size)).is(ErrorKind::kInvalid)) << size;
  }
  EXPECT_TRUE(parse_state(right + " ").is(ErrorKind::kInvalid));
  for (std::size_t place = 0; place < right.size(); ++place) {
    for (const char c : {'x', ' ', 'F', '-', '\n'}) {
      if (right[place] == c) continue;
      std::string wrong = right;
      wrong[place] = c;
      EXPECT_TRUE(parse_state(wrong).is(ErrorKind::kInvalid)) << wrong;
    }
  }
}

TEST(StateText, NothingElseIsOne) {
  expect_nothing_else(to_text(some_state()));
  expect_nothing_else(std::string(kVersion1));
  EXPECT_TRUE(parse_state("batchloom-state 1 1f000000000000000000000000000000 "
                          "99999999999999999999 00000000000000ab")
                  .is(ErrorKind::kInvalid));
}

TEST(StateText, AnyDigitThatWasChangedIsSeen) {
  const std::string right = to_text(some_state());
  for (std::size_t place = 0; place < right.size(); ++place) {
    if (right[place] < '0' || right[place] > '9') continue;
    std::string wrong = right;
    wrong[place] = wrong[place] == '7' ? '8' : '7';
    EXPECT_TRUE(parse_state(wrong).is(ErrorKind::kInvalid)) << wrong;
  }
}

TEST(StateText, SaysWhatIsWrong) {
  const std::string right = to_text(some_state());
  const auto refused = [](std::string_view text, const std::string& why) {
    return is_error(parse_state(text).status(), ErrorKind::kInvalid, {"state of a consumer", why});
  };
  EXPECT_TRUE(refused("", "does not begin with"));
  EXPECT_TRUE(refused(right.substr(0, 60), "changed or cut short"));
  EXPECT_TRUE(refused("batchloom-state 3 what comes", "of version \"3\""));
  std::string other_step = right;
  other_step.replace(other_step.find(" 12 "), 4, " 13 ");
  EXPECT_TRUE(refused(other_step, "it was changed: its check is"));
}

}  // namespace
}  // namespace batchloom::client
