// SPDX-License-Identifier: Apache-2.0
// What verify_stream() finds in batch objects.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "batchloom/model/plan_digest.h"
#include "batchloom/store/batch_testing.h"
#include "batchloom/store/store_fixture_testing.h"
#include "batchloom/store/verify.h"

namespace batchloom::store {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;
using testing::StartsWith;

/// A stream of one producer; each batch is one step of two records for one rank. Objects are of one
/// size.
class VerifyBatches : public StoreTest {
 protected:
  /// Appends a batch of the records `first` and `first` + 1.
  void append(std::uint64_t first) { commit(build(first), seq_.value); }

  /// An object for the next sequence number.
  BuiltBatch build(std::uint64_t first) {
    model::StepPlan plan = packed_plan({.samples = 2, .tokens = 40});
    for (model::PlanSample& sample : plan.samples) sample.id.index = model::RecordIndex(first++);
    plan.digest = model::plan_digest(plan);
    batch_.steps.clear();
    batch_.steps.push_back(make_step(std::move(plan), TokenWidth::k16, 1));
    batch_.options.token_width = TokenWidth::k16;
    batch_.options.identity = {
        .stream = stream_->uuid(), .producer = "a", .term = session_->term(), .seq = seq_};
    batch_.options.origin.sources = {{"web", 1}};
    return batch_.build();
  }

  void commit(const BuiltBatch& built, std::uint64_t seq) {
    auto batch = session_->upload(
        {.seq = Seq(seq), .steps = built.steps, .ranks = built.ranks, .run_table = built.run_table},
        built.parts, {});
    ASSERT_TRUE(batch.is_ok()) << batch.status().to_string();
    const auto receipt = session_->commit(std::span(&*batch, 1), {});
    ASSERT_TRUE(receipt.is_ok()) << receipt.status().to_string();
    ++seq_;
  }

  VerifyReport verify(VerifyDepth depth) {
    auto report = verify_stream(*other_, depth, {});
    EXPECT_TRUE(report.is_ok()) << report.status().to_string();
    EXPECT_THAT(report->problems, Each(MatchesRegex("[^ ]+: (at byte [0-9]+: |missing, ).+")));
    return std::move(report).value();
  }

  /// The key of the only batch object of `seq`.
  std::string key_of(Seq seq) {
    const auto name = fmt::format("/a.{:012}.{:012}.", session_->term().value, seq.value);
    for (const std::string& key : keys("d/")) {
      if (key.find(name) != std::string::npos) return key;
    }
    return "none";
  }
  Bytes get(const std::string& key) { return memory_.get(key, {}, {}).value()->bytes; }
  void overwrite(const std::string& key, const Bytes& bytes) {
    ASSERT_TRUE(
        objstore::put_bytes(memory_, key, bytes, objstore::PutCondition::none(), {}).is_ok());
  }

  std::unique_ptr<ProducerSession> session_ = open_session(*stream_, "a");
  TestBatch batch_ = small_batch();
  Seq seq_;
};

TEST_F(VerifyBatches, CountsSamples) {
  for (const std::uint64_t first : {6U, 0U, 2U}) append(first);
  for (const VerifyDepth depth : {VerifyDepth::kRecords, VerifyDepth::kPayload}) {
    const VerifyReport report = verify(depth);
    EXPECT_THAT(report.problems, IsEmpty());
    EXPECT_EQ(report.samples, 6U);
    EXPECT_EQ(report.tokens, 240U);
  }
  EXPECT_EQ(verify(VerifyDepth::kManifest).samples, 0U);
}

TEST_F(VerifyBatches, FindsARecordThatIsDrawnTwice) {
  for (const std::uint64_t first : {0U, 2U, 1U}) append(first);
  EXPECT_THAT(verify(VerifyDepth::kManifest).problems, IsEmpty());
  EXPECT_THAT(
      verify(VerifyDepth::kRecords).problems,
      ElementsAre(AllOf(HasSubstr(key_of(Seq(2))), HasSubstr("sample 0:0:1:0 was drawn before"))));
}

TEST_F(VerifyBatches, EachChangedByteIsFoundByTheDepthThatReadsIt) {
  for (const std::uint64_t first : {0U, 2U}) append(first);
  const std::string key = key_of(Seq(1));
  const Bytes sound = get(key);
  std::size_t shallow = 0;
  for (std::size_t at = 0; at < sound.size(); ++at) {
    Bytes damaged = sound;
    damaged[at] ^= std::byte{0x10};
    overwrite(key, damaged);
    shallow += verify(VerifyDepth::kRecords).problems.size();
    EXPECT_THAT(verify(VerifyDepth::kPayload).problems, ElementsAre(StartsWith(key + ": at byte ")))
        << at;
  }
  EXPECT_GT(shallow, 100U);
  EXPECT_LT(shallow, sound.size());
}

TEST_F(VerifyBatches, AnObjectOfAnotherBatchIsDamage) {
  for (const std::uint64_t first : {0U, 2U, 4U}) append(first);
  overwrite(key_of(Seq(2)), get(key_of(Seq(1))));
  EXPECT_THAT(verify(VerifyDepth::kManifest).problems, IsEmpty());
  EXPECT_THAT(verify(VerifyDepth::kRecords).problems, ElementsAre(HasSubstr(key_of(Seq(2)))));
}

TEST_F(VerifyBatches, FindsARunThatIsNotAsPlanned) {
  append(0);
  const BuiltBatch other = build(2);
  const Bytes lie = object_of(other);
  BuiltBatch built = build(4);
  // The runs of one object before the index of another: every part is sound by itself.
  Bytes mixed = object_of(built);
  ASSERT_EQ(mixed.size(), lie.size());
  const auto index = decode_batch_footer(context_of(batch_.options.identity, built),
                                         ByteSpan(mixed).last(kBatchFooterBytes));
  ASSERT_TRUE(index.is_ok()) << index.status().to_string();
  std::copy_n(lie.begin(), index->offset_bytes, mixed.begin());
  built.run_table = other.run_table;
  built.parts = {ByteSpan(mixed)};
  commit(built, 1);
  EXPECT_THAT(verify(VerifyDepth::kPayload).problems,
              ElementsAre(AllOf(HasSubstr(key_of(Seq(1))),
                                HasSubstr("in step 1 the run of rank 0 is not what the index "
                                          "says: is of other samples"))));
}

TEST_F(VerifyBatches, AnErrorOfTheStoreIsNoDamage) {
  append(0);
  for (const auto& [answer, kind] : {std::pair(Answer::kUnavailable, ErrorKind::kUnavailable),
                                     std::pair(Answer::kForbidden, ErrorKind::kInvalid)}) {
    for (const std::size_t passed : {0U, 1U, 2U}) {  // The index takes two requests.
      const auto about_it = [&](Answer how, std::size_t times) {
        objects_.next({.operation = objstore::Operation::kGet,
                       .prefix = key_of(Seq(0)),
                       .answer = how,
                       .times = times});
      };
      if (passed > 0) about_it(Answer::kPass, passed);
      about_it(answer, 100);
      const auto report = verify_stream(*stream_, VerifyDepth::kPayload, {});
      EXPECT_TRUE(report.is(kind)) << report.status().to_string();
      objects_.forget_script();
    }
  }
}

}  // namespace
}  // namespace batchloom::store
