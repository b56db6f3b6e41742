// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/runs_check.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "batchloom/store/batch_reader.h"
#include "batchloom/store/batch_testing.h"
#include "batchloom/store/store_fixture_testing.h"

namespace batchloom::store {
namespace {

/// Index and runs of a small object.
class RunsCheckTest : public StoreTest {
 protected:
  RunsCheckTest() {
    TestBatch batch = small_batch();
    batch.options.identity.stream = stream_->uuid();
    const BuiltBatch built = batch.build();
    const Entry entry = entry_of(batch.options.identity, built);
    put_object(memory_, entry, object_of(built));
    BatchReader reader(*stream_);
    index_ = *reader.read_index(entry, {}).value();
    for (std::uint32_t rank = 0; rank < built.ranks; ++rank) {
      for (store::Run& run : reader.read_runs(entry, model::HdpRank(rank), {}).value()) {
        runs_.push_back(std::move(run));
      }
    }
  }

  /// What is wrong with the labels at position 1, after all runs.
  std::optional<std::string> labels_at_1() const {
    RunsCheck check(index_);
    for (const store::Run& run : runs_) EXPECT_EQ(check.add(run), std::nullopt);
    EXPECT_EQ(check.check_labels(0), std::nullopt);
    return check.check_labels(1);
  }

  BatchIndex index_;
  std::vector<store::Run> runs_;
};

TEST_F(RunsCheckTest, FindsNothingInASoundObject) {
  EXPECT_EQ(labels_at_1(), std::nullopt);
}

TEST_F(RunsCheckTest, FindsASampleOfWhichOtherLabelsCount) {
  model::PlanSample& sample = index_.steps[1].plan.samples.back();
  const std::uint32_t labels = sample.valid_labels++;
  EXPECT_EQ(labels_at_1(), fmt::format("{} labels of sample {} count, planned were {}", labels,
                                       model::to_string(sample.id), labels + 1));
}

TEST_F(RunsCheckTest, FindsARunThatIsNotAsPlanned) {
  RunsCheck check(index_);
  store::Run run = runs_.front();
  ++run.global_valid_labels;
  EXPECT_EQ(check.add(run), "counts other labels");
}

}  // namespace
}  // namespace batchloom::store
