// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/limits.h"

#include <functional>

#include "batchloom/store/store_fixture_testing.h"

namespace batchloom::store {
namespace {

/// Two topologies and two memberships, the largest there are.
constexpr std::size_t kEventsMin = 2 * (64 + 388);

using Change = std::function<void(Limits&)>;

Status validate_with(const Change& change) {
  Limits limits;
  change(limits);
  return validate(limits);
}

TEST(Limits, TheProductsAndTheTestsAreValid) {
  EXPECT_TRUE(validate({}).is_ok());
  EXPECT_TRUE(validate(tiny_limits()).is_ok());
}

TEST(Limits, EachBoundIsNamed) {
  const std::vector<std::pair<std::string, Change>> refused = {
      {"arity", [](Limits& limits) { limits.arity = 1; }},
      {"tail_entries", [](Limits& limits) { limits.tail_entries = 0; }},
      {"slots_kept", [](Limits& limits) { limits.slots_kept = 0; }},
      {"tail_bytes", [](Limits& limits) { limits.tail_bytes = 2000; }},
      {"producer_bytes", [](Limits& limits) { limits.producer_bytes = 100; }},
      {"segment_bytes", [](Limits& limits) { limits.segment_bytes = 95; }},
      {"event_bytes", [](Limits& limits) { limits.event_bytes = kEventsMin - 1; }},
      {"event_bytes", [](Limits& limits) { limits.inline_membership_max_bytes = 2000; }},
      {"event_bytes", [](Limits& limits) { limits.inline_membership_max_bytes = SIZE_MAX; }},
      {"state_max_bytes", [](Limits& limits) { limits.state_max_bytes = kStateMaxBytes + 1; }},
      {"budgets", [](Limits& limits) { limits.event_bytes += 1; }},
  };
  for (const auto& [name, change] : refused) {
    const Status status = validate_with(change);
    EXPECT_TRUE(status.is(ErrorKind::kInvalid)) << name;
    EXPECT_NE(status.message().find(name), std::string_view::npos) << status.to_string();
  }
}

TEST(Limits, TheLeastOfEachIsEnough) {
  EXPECT_TRUE(validate_with([](Limits& limits) { limits.arity = 2; }).is_ok());
  EXPECT_TRUE(validate_with([](Limits& limits) { limits.tail_entries = 1; }).is_ok());
  EXPECT_TRUE(validate_with([](Limits& limits) { limits.slots_kept = 1; }).is_ok());
  EXPECT_TRUE(validate_with([](Limits& limits) { limits.segment_bytes = 96; }).is_ok());
  EXPECT_TRUE(validate_with([](Limits& limits) { limits.event_bytes = kEventsMin; }).is_ok());
  EXPECT_TRUE(validate_with([](Limits& limits) { limits.state_max_bytes = 0; }).is_ok());
  EXPECT_TRUE(validate_with([](Limits& limits) { limits.inline_state_bytes = 0; }).is_ok());
}

using LimitsOfAStream = StoreTest;

TEST_F(LimitsOfAStream, BadOnesDoNotOpenIt) {
  Limits limits;
  limits.arity = 0;
  const auto stream = Stream::open(deps(), {.limits = limits, .safeguards = {}}, {});
  EXPECT_TRUE(stream.is(ErrorKind::kInvalid));
}

}  // namespace
}  // namespace batchloom::store
