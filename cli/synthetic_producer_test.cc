// SPDX-License-Identifier: Apache-2.0
#include "cli/synthetic_producer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace batchloom::cli {
namespace {

using simulator::SyntheticConfig;
using store::Seq;
using testing::HasSubstr;

std::string refusal(ByteSpan state, const SyntheticConfig& config, Seq next) {
  const Status checked = check_synthetic_state(state, config, next);
  EXPECT_TRUE(checked.is(ErrorKind::kInvalid));
  return checked.to_string();
}

TEST(SyntheticState, LetsTheSameConfigurationGoOn) {
  const SyntheticConfig config;
  EXPECT_TRUE(check_synthetic_state({}, config, Seq(0)).is_ok());
  EXPECT_TRUE(check_synthetic_state(synthetic_state(config, Seq(7)), config, Seq(7)).is_ok());
}

TEST(SyntheticState, RefusesWhatAnotherProgramWrote) {
  const SyntheticConfig config;
  EXPECT_THAT(refusal({}, config, Seq(1)), HasSubstr("was not written by"));
  EXPECT_THAT(refusal(as_bytes("other"), config, Seq(0)), HasSubstr("was not written by"));
  Bytes state = synthetic_state(config, Seq(7));
  EXPECT_THAT(refusal(state, config, Seq(8)), HasSubstr("before batch 8 was not written by"));
  state[0] ^= std::byte{1};
  EXPECT_THAT(refusal(state, config, Seq(7)), HasSubstr("was not written by"));
}

TEST(SyntheticState, RefusesEveryOtherConfiguration) {
  const auto refuse_changed = [](auto change) {
    SyntheticConfig config;
    change(config);
    const Bytes state = synthetic_state(SyntheticConfig(), Seq(3));
    EXPECT_THAT(refusal(state, config, Seq(3)), HasSubstr("made with other options"));
  };
  refuse_changed([](SyntheticConfig& config) { config.seed = 1; });
  refuse_changed([](SyntheticConfig& config) { config.ranks = 1; });
  refuse_changed([](SyntheticConfig& config) { config.steps_per_object = 2; });
  refuse_changed([](SyntheticConfig& config) { config.records_per_run = 1; });
  refuse_changed([](SyntheticConfig& config) { config.record_tokens = 2; });
  refuse_changed([](SyntheticConfig& config) { config.ring = true; });
  refuse_changed([](SyntheticConfig& config) { config.token_width = store::TokenWidth::k32; });
  refuse_changed([](SyntheticConfig& config) { config.source = model::SourceId(1); });
}

}  // namespace
}  // namespace batchloom::cli
