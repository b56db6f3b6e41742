// SPDX-License-Identifier: Apache-2.0
// Real batch objects, whole and spoilt in each way that an inspection finds.
#include "batchloom/simulator/batch_inspector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "batchloom/simulator/batch_sample_testing.h"

namespace batchloom::simulator {
namespace {

using model::HdpRank;
using testing::HasSubstr;

class RunInspectorTest : public testing::Test {
 protected:
  SampleObject make(const std::string& producer, std::uint64_t seq, std::uint32_t ranks,
                    const std::function<void(SyntheticBatches::Object&)>& spoil = nullptr) const {
    return make_sample(sources_, {producer, seq, ranks}, spoil);
  }
  Result<BatchBody> inspect(const SampleObject& sample) const {
    return RunInspector(sources_).inspect(kSampleStream, sample.entry,
                                          std::make_shared<const Bytes>(sample.bytes));
  }
  void expect_refused(const SampleObject& sample, const std::string& reason) const {
    const auto body = inspect(sample);
    ASSERT_FALSE(body.is_ok());
    EXPECT_THAT(body.status().message(), HasSubstr(reason));
  }

  const BatchSources sources_ = sample_sources();
};

TEST_F(RunInspectorTest, AWholeObjectHoldsItsRecords) {
  for (std::uint32_t ranks = 1; ranks <= kMostRanks; ++ranks) {
    EXPECT_EQ(inspect(make("p0", 4, ranks)).value(),
              (BatchBody{.producer = "p0", .from = 48, .to = 60}));
    EXPECT_EQ(inspect(make("p1", 1, ranks)).value(),
              (BatchBody{.producer = "p1", .from = 21, .to = 42}));
  }
  EXPECT_EQ(sources_.records_per_object("p0"), 12U);
  EXPECT_EQ(sources_.records_per_object("p1"), 21U);
}

TEST_F(RunInspectorTest, EveryBitOfTheRunsCounts) {
  const SampleObject whole = make("p1", 0, 2);
  const std::uint64_t table_end = store::rank_rows_offset(HdpRank(2), 3);
  const std::uint64_t runs_begin = store::first_run_offset(2, 3);
  const store::BatchContext context{.key = "sample",
                                    .identity = {kSampleStream, "p1", kSampleTerm, store::Seq(0)},
                                    .steps = 3,
                                    .ranks = 2,
                                    .size_bytes = whole.bytes.size()};
  const auto front =
      store::decode_batch_front(context, ByteSpan(whole.bytes).first(runs_begin)).value();
  for (std::uint64_t at = store::rank_rows_offset(HdpRank(0), 3); at < front.runs_end; at += 7) {
    SampleObject damaged = whole;
    damaged.bytes[at] ^= std::byte{4};
    const bool is_padding = at >= table_end && at < runs_begin;  // Which no rank reads.
    EXPECT_EQ(inspect(damaged).is_ok(), is_padding) << at;
  }
}

TEST_F(RunInspectorTest, AnObjectThatEndsEarlyIsFound) {
  const SampleObject whole = make("p0", 0, 2);
  for (const std::size_t size : {std::size_t{0}, std::size_t{100}, whole.bytes.size() / 2}) {
    SampleObject cut = whole;
    cut.bytes.resize(size);
    EXPECT_FALSE(inspect(cut).is_ok()) << size;
  }
}

TEST_F(RunInspectorTest, AnotherObjectIsFound) {
  SampleObject other = make("p0", 1, 2);
  other.bytes = make("p0", 2, 2).bytes;
  EXPECT_FALSE(inspect(other).is_ok());
}

TEST_F(RunInspectorTest, AnotherTableInTheEntryIsFound) {
  SampleObject sample = make("p0", 1, 2);
  sample.entry.run_table[40] ^= std::byte{1};
  expect_refused(sample, "the run table in its entry is not the object's at rank 1");
  sample.entry.run_table.clear();
  expect_refused(sample, "the run table in its entry is not the object's at rank 0");
}

TEST_F(RunInspectorTest, AnEntryWithOtherCountsIsFound) {
  SampleObject sample = make("p0", 1, 2);
  sample.entry.ranks = 1;
  EXPECT_FALSE(inspect(sample).is_ok());
  sample = make("p0", 1, 2);
  sample.entry.steps = 1;
  EXPECT_FALSE(inspect(sample).is_ok());
  for (const std::uint32_t ranks : {0U, 4U}) {
    sample.entry.ranks = ranks;
    expect_refused(sample, "ranks");
  }
  sample = make("p0", 1, 2);
  sample.entry.producer = "x";
  expect_refused(sample, "no source");
}

TEST_F(RunInspectorTest, TokensThatItsProducerDidNotMakeAreFound) {
  const std::string other(6, 'x');
  expect_refused(make("p0", 1, 2,
                      [&](SyntheticBatches::Object& object) {
                        object.samples[1][4].tokens = as_bytes(other);
                      }),
                 "the run of rank 1 and position 1 is not what its producer made");
}

TEST_F(RunInspectorTest, StepsThatLeaveRecordsOutAreFound) {
  expect_refused(make("p0", 1, 2,
                      [&](SyntheticBatches::Object& object) {
                        auto other = sources_.of("p0", 2).object(store::Seq(2));
                        object.plans[1] = other.plans[1];
                        object.samples[1] = other.samples[1];
                        object.origins[1] = other.origins[1];
                      }),
                 "sample 0:0:30:0 stands where record 18 is next");
}

TEST_F(RunInspectorTest, TheStepsOfAnotherObjectAreFound) {
  expect_refused(make("p0", 1, 2,
                      [&](SyntheticBatches::Object& object) {
                        object = sources_.of("p0", 2).object(store::Seq(2));
                      }),
                 "the run of rank 0 and position 0 is not what its producer made");
}

}  // namespace
}  // namespace batchloom::simulator
