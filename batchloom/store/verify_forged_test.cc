// SPDX-License-Identifier: Apache-2.0
// Streams whose objects are whole, one by one, and which no producer that keeps the rules has left.
#include "batchloom/store/verify_testing.h"

namespace batchloom::store {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

TEST_F(VerifyTest, NoticesABrokenChain) {
  grow();
  Head forged = head(25).head;
  forged.previous_crc ^= 1;
  forge(forged);
  EXPECT_THAT(verify().problems, ElementsAre(AllOf(HasSubstr(manifest_key(Slot(25))),
                                                   HasSubstr("continues a head with CRC"))));
}

TEST_F(VerifyTest, NoticesAGapBetweenSegmentAndTail) {
  grow();
  Head forged = head(25).head;
  ASSERT_EQ(forged.tail.size(), 2u);
  forged.tail.erase(forged.tail.begin());
  forge(forged);
  EXPECT_THAT(verify().problems,
              AllOf(Contains(HasSubstr("ends at step 21, but what follows it begins at 22")),
                    Contains(HasSubstr("step 22 is batch 16 of a in term 15; expected batch 15"))));
}

TEST_F(VerifyTest, NoticesARowThatDisagreesWithTheEntries) {
  grow();
  Head forged = head(25).head;
  forged.producers[0].next_seq = Seq(30);
  forge(forged);
  EXPECT_THAT(
      verify().problems,
      AllOf(Contains(HasSubstr("batch 30 of a is next, but the stream ends with batch 16 of it")),
            Contains(HasSubstr("a's state is that after batch 16, but batch 30 is next"))));
}

TEST_F(VerifyTest, NoticesABatchThatWasCommittedTwice) {
  const auto broken = open_stream({.broken = Safeguard::kDropRule, .on_use = {}});
  const auto session = open_session(*broken, "a");
  const PendingBatch batch = upload(*session, 0);
  ASSERT_TRUE(session->commit(std::span(&batch, 1), {}).is_ok());
  ASSERT_TRUE(session->commit(std::span(&batch, 1), {}).is_ok());
  EXPECT_THAT(verify().problems, AllOf(Contains(HasSubstr("committed twice")),
                                       Contains(HasSubstr("a batch was committed again"))));
}

TEST_F(VerifyTest, NoticesAFencedSessionThatWentOn) {
  const auto broken = open_stream({.broken = Safeguard::kTermCheck, .on_use = {}});
  const auto old_session = open_session(*broken, "a");
  append(*old_session, 0, 1);
  append(*open_session("a"), 1, 2);
  append(*old_session, 2, 3);
  EXPECT_THAT(verify().problems, AllOf(Contains(HasSubstr("had been fenced in term 4")),
                                       Contains(HasSubstr("a fenced session went on"))));
}

}  // namespace
}  // namespace batchloom::store
