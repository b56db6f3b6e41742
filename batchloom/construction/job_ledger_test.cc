// SPDX-License-Identifier: Apache-2.0
#include "batchloom/construction/job_ledger.h"

#include <gmock/gmock.h>

namespace batchloom::construction {
namespace {

using store::Seq;

JobPtr ledger_job(std::uint64_t seq, std::size_t state_bytes = 0) {
  auto job = std::make_shared<ConstructionJob>();
  job->seq = Seq(seq);
  job->state_after.resize(state_bytes);
  return job;
}

store::PendingBatch batch_of(const ConstructionJob& job) {
  store::PendingBatch batch;
  batch.seq = job.seq;
  return batch;
}

std::vector<std::uint64_t> numbers_of(const std::vector<store::PendingBatch>& batches) {
  std::vector<std::uint64_t> result;
  for (const store::PendingBatch& batch : batches) result.push_back(batch.seq.value);
  return result;
}

TEST(JobLedger, GivesTheLowestAndCommitsInOrder) {
  JobLedger ledger(Seq(5), 1 << 20);
  for (std::uint64_t seq = 5; seq < 9; ++seq) ledger.add(ledger_job(seq));
  EXPECT_EQ(ledger.end(), Seq(9));
  const JobPtr five = ledger.take();
  const JobPtr six = ledger.take();
  const JobPtr seven = ledger.take();
  EXPECT_EQ(five->seq, Seq(5));
  ledger.built(*six, batch_of(*six));
  ledger.put_back(five);
  EXPECT_FALSE(ledger.has_ready()) << "5 comes first";
  EXPECT_TRUE(ledger.ready().empty());
  EXPECT_EQ(ledger.take(), five);
  ledger.built(*five, batch_of(*five));
  EXPECT_TRUE(ledger.has_ready());
  EXPECT_EQ(ledger.tried_end(), Seq(5));
  EXPECT_THAT(numbers_of(ledger.ready()), testing::ElementsAre(5, 6));
  EXPECT_EQ(ledger.tried_end(), Seq(7));
  EXPECT_EQ(ledger.committed_end(), Seq(5));
  ledger.built(*seven, batch_of(*seven));
  ledger.committed(2);
  EXPECT_EQ(ledger.committed_end(), Seq(7));
  EXPECT_THAT(numbers_of(ledger.ready()), testing::ElementsAre(7));
  EXPECT_TRUE(ledger.has_waiting()) << "8";
}

TEST(JobLedger, CountsBytesUntilTheyAreCommitted) {
  const std::uint64_t empty = ledger_job(0)->size_bytes();
  JobLedger ledger(Seq(0), 2 * empty + 100);
  EXPECT_TRUE(ledger.has_room(1 << 30)) << "alone";
  ledger.add(ledger_job(0, 60));
  EXPECT_EQ(ledger.bytes(), empty + 60);
  EXPECT_TRUE(ledger.has_room(empty + 40));
  EXPECT_FALSE(ledger.has_room(empty + 41));
  const JobPtr job = ledger.take();
  ledger.built(*job, batch_of(*job));
  EXPECT_EQ(ledger.bytes(), empty + 60);
  ledger.committed(1);
  EXPECT_EQ(ledger.bytes(), 0U);
  ledger.add(ledger_job(1, 4096));
  EXPECT_FALSE(ledger.has_room(0)) << "the bound is passed";
}

}  // namespace
}  // namespace batchloom::construction
