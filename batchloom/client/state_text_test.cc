// SPDX-License-Identifier: Apache-2.0
#include "batchloom/client/state_text.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

namespace batchloom::client {
namespace {

ConsumerState some_state() {
  ConsumerState state{.stream = {}, .next_step = Step(12), .samples_hash = 0xab};
  state.stream.bytes[0] = std::byte{0x1f};
  return state;
}

TEST(StateText, IsOneLine) {
  EXPECT_EQ(to_text(some_state()),
            "batchloom-state 1 1f000000000000000000000000000000 12 00000000000000ab");
}

RC_GTEST_PROP(StateText, ComesBack,
              (const std::array<std::uint8_t, 16>& uuid, std::uint64_t step, std::uint64_t hash)) {
  ConsumerState state{.stream = {}, .next_step = Step(step), .samples_hash = hash};
  std::ranges::transform(uuid, state.stream.bytes.begin(),
                         [](std::uint8_t byte) { return std::byte{byte}; });
  const auto parsed = parse_state(to_text(state));
  RC_ASSERT(parsed.is_ok());
  RC_ASSERT(*parsed == state);
}

TEST(StateText, NothingElseIsOne) {
  const std::string right = to_text(some_state());
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
  EXPECT_TRUE(parse_state("batchloom-state 1 1f000000000000000000000000000000 "
                          "99999999999999999999 00000000000000ab")
                  .is(ErrorKind::kInvalid));
}

}  // namespace
}  // namespace batchloom::client
