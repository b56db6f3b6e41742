// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/stream_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "batchloom/control/pipeline_state.h"
#include "batchloom/control/pipeline_testing.h"
#include "batchloom/store/membership.h"
#include "batchloom/store/store_fixture_testing.h"

namespace batchloom::control {
namespace {

using store::Seq;
using store::Step;
using testing::HasSubstr;

class StreamSettingsTest : public store::StoreTest {
 protected:
  Result<StreamSettings> compare(const Membership& settings,
                                 std::optional<std::uint64_t> change_from = {}) {
    std::optional<Step> step;
    if (change_from) step = Step(*change_from);
    return compare_settings(*stream_, settings, step, {});
  }
  std::string refusal(const Membership& settings, std::optional<std::uint64_t> change_from = {}) {
    const auto compared = compare(settings, change_from);
    EXPECT_TRUE(compared.is(ErrorKind::kInvalid));
    return std::string(compared.status().message());
  }

  void record(std::uint64_t from_step, const Membership& settings) {
    const Hash128 digest = settings.digest();
    const auto set = session_->set_membership({.from_step = Step(from_step),
                                               .digest = {.high = digest.high, .low = digest.low},
                                               .keys = encode_membership(settings).value()},
                                              {});
    ASSERT_TRUE(set.is_ok()) << set.status().to_string();
  }

  void commit(std::uint64_t seq, const Membership& settings) {
    PipelineState state;
    state.membership = settings.digest();
    state.planner.mixture.sources.resize(2);
    commit_state(seq, as_text(encode_pipeline_state(state)));
  }
  void commit_state(std::uint64_t seq, std::string_view state) {
    const auto batch = store::upload_batch(*session_, Seq(seq), state);
    const auto done = session_->commit(std::span(&batch, 1), {});
    ASSERT_TRUE(done.is_ok()) << done.status().to_string();
  }

  const Membership first_ = membership_of_plain(plain_pipeline_text());
  const Membership other_weight_ =
      membership_of_plain(text_with(plain_pipeline_text(), "weight = 0.5", "weight = 0.25"));
  std::unique_ptr<store::ProducerSession> session_ =
      store::open_session(*stream_, std::string(kPipelineProducer));
};

TEST_F(StreamSettingsTest, ANewStreamHasNone) {
  EXPECT_EQ(compare(first_).value(), StreamSettings{.next_step = Step(0)});
}

TEST_F(StreamSettingsTest, TheSameSettingsGoOn) {
  record(0, first_);
  EXPECT_EQ(compare(first_).value(), (StreamSettings{Step(0), true}));
  commit(0, first_);
  EXPECT_EQ(compare(first_).value(), (StreamSettings{Step(1), true}));
}

TEST_F(StreamSettingsTest, OtherSettingsAreRefusedWithWhatDiffers) {
  record(0, first_);
  commit(0, first_);
  EXPECT_EQ(refusal(other_weight_),
            "the stream was made by other settings of what steps hold:\n"
            "  source.docs.weight: 0.5 -> 0.25\n"
            "go on with those, use another stream, or have the change hold from its next step on: "
            "--change-from=1");
  EXPECT_THAT(refusal(other_weight_, 0), HasSubstr("which is 1, and not from step 0"));
  EXPECT_THAT(refusal(other_weight_, 2), HasSubstr("a weight that is to change later is a sched"));
  EXPECT_THAT(refusal(first_, 1), HasSubstr("has changed; these hold from step 0 on: leave out"));
}

TEST_F(StreamSettingsTest, AChangeHoldsFromTheNextStepOn) {
  record(0, first_);
  commit(0, first_);
  EXPECT_EQ(compare(other_weight_, 1).value(), (StreamSettings{Step(1), false, first_}));
  record(1, other_weight_);
  const StreamSettings changed{Step(1), true, first_};
  EXPECT_EQ(compare(other_weight_, 1).value(), changed) << "killed before it committed a batch";
  EXPECT_EQ(compare(other_weight_).value(), changed);
  EXPECT_THAT(refusal(first_), HasSubstr("source.docs.weight: 0.25 -> 0.5"));
  EXPECT_EQ(compare(first_, 1).value(), (StreamSettings{Step(1), false})) << "and taken back";
  commit(1, other_weight_);
  EXPECT_EQ(compare(other_weight_, 1).value(), (StreamSettings{Step(2), true}))
      << "the same command once more";
  EXPECT_THAT(refusal(other_weight_, 2), HasSubstr("these hold from step 1 on"));
}

TEST_F(StreamSettingsTest, AStateThatIsNoPipelinesIsRefused) {
  commit_state(0, "a state");
  EXPECT_TRUE(compare(first_).is(ErrorKind::kCorruption));
  EXPECT_THAT(compare(first_).status().to_string(),
              HasSubstr("did something else than a pipeline write this stream?"));
}

TEST_F(StreamSettingsTest, ABatchOfSettingsThatNobodyRecordedIsCorruption) {
  commit(0, other_weight_);
  EXPECT_TRUE(compare(first_).is(ErrorKind::kCorruption));
  record(1, first_);
  EXPECT_TRUE(compare(first_).is(ErrorKind::kCorruption));
  EXPECT_THAT(compare(first_).status().to_string(), HasSubstr("than the stream says of step 0"));
}

TEST_F(StreamSettingsTest, KeysThatAreNoSettingsAreCorruption) {
  ASSERT_TRUE(session_->set_membership({Step(0), {}, to_bytes("nonsense")}, {}).is_ok());
  EXPECT_TRUE(compare(first_).is(ErrorKind::kCorruption));
  EXPECT_THAT(compare(first_).status().to_string(), HasSubstr("what the stream says of step 0: "));
}

}  // namespace
}  // namespace batchloom::control
