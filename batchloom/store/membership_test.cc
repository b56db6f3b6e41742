// SPDX-License-Identifier: Apache-2.0
// Setting the keys that decide membership, and reading them back.
#include "batchloom/store/membership.h"

#include <gmock/gmock.h>

#include "batchloom/store/reclaimer.h"
#include "batchloom/store/stream_events.h"
#include "batchloom/store/trim_fixture_testing.h"
#include "batchloom/store/verify.h"

namespace batchloom::store {
namespace {

using objstore::Operation;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

constexpr std::string_view kFew = "few";  // Inline: the tests' limit is 8 bytes.
constexpr std::string_view kMany = "so many keys that they stand beside the head";

Membership membership(std::uint64_t from_step, std::uint64_t digest, std::string_view keys) {
  return {
      .from_step = Step(from_step), .digest = {.high = 7, .low = digest}, .keys = to_bytes(keys)};
}

class MembershipTest : public TrimTest {
 protected:
  Result<EditReceipt> set(std::uint64_t from_step, std::uint64_t digest, std::string_view keys) {
    return session_->set_membership(membership(from_step, digest, keys), {});
  }
  void must_set(std::uint64_t from_step, std::uint64_t digest, std::string_view keys) {
    const auto receipt = set(from_step, digest, keys);
    ASSERT_TRUE(receipt.is_ok()) << receipt.status().to_string();
  }
  Result<Membership> read(std::uint64_t step) { return read_membership(*stream_, Step(step), {}); }
  Head head() { return newest(*other_)->head; }
  std::vector<std::string> membership_objects() {
    std::vector<std::string> found = keys("d/");
    std::erase_if(found, [](const std::string& key) { return !key.ends_with(".membership"); });
    return found;
  }
  void next_put(std::string_view prefix, Answer answer, std::function<void()> before = {}) {
    objects_.next({.operation = Operation::kPut,
                   .prefix = std::string(prefix),
                   .answer = answer,
                   .before = std::move(before)});
  }

  std::unique_ptr<ProducerSession> session_ = open_session(*stream_, "p");
};

TEST_F(MembershipTest, IsReadAsItWasSet) {
  must_set(0, 1, kFew);
  must_set(5, 2, kMany);
  commit_batches(*session_, Seq(0), 3);
  for (const std::uint64_t step : {0U, 4U, 5U, 1000U}) {
    const Membership found = read(step).value();
    EXPECT_EQ(found.from_step, Step(step < 5 ? 0 : 5));
    EXPECT_EQ(found.digest, (MembershipDigest{.high = 7, .low = step < 5 ? 1U : 2U}));
    EXPECT_EQ(as_text(found.keys), step < 5 ? kFew : kMany);
  }
  EXPECT_THAT(membership_objects(), SizeIs(1));
  EXPECT_EQ(head().writer.producer, "p") << "the last slot is a commit";
  expect_sound();
}

TEST_F(MembershipTest, IsAnEventThatTakesNoStep) {
  const Head before = head();
  const EditReceipt receipt = set(0, 1, kFew).value();
  EXPECT_TRUE(receipt.committed);
  Head expected = successor(before);
  expected.memberships = {{.from_step = Step(0),
                           .digest = {.high = 7, .low = 1},
                           .producer = "p",
                           .term = session_->term(),
                           .inline_keys = to_bytes(kFew),
                           .ref = {}}};
  expected.txid = receipt.head->head.txid;
  expected.previous_crc = receipt.head->head.previous_crc;
  expected.writer = {};
  EXPECT_EQ(receipt.head->head, expected);
}

TEST_F(MembershipTest, NoKeysAtAllAreKeysToo) {
  must_set(0, 1, "");
  EXPECT_TRUE(read(0).value().keys.empty());
}

TEST_F(MembershipTest, IsNotFoundWhereNoneWasSet) {
  EXPECT_TRUE(read(0).is(ErrorKind::kNotFound));
  must_set(3, 1, kFew);
  const auto missing = read(2);
  EXPECT_TRUE(missing.is(ErrorKind::kNotFound));
  EXPECT_THAT(std::string(missing.status().message()),
              HasSubstr("slot 3 has no membership keys for step 2"));
  EXPECT_TRUE(read(3).is_ok());
}

TEST_F(MembershipTest, IsNotFoundForATrimmedStep) {
  must_set(0, 1, kFew);
  commit_batches(*session_, Seq(0), 3);
  pin(Step(2));
  run_trim();
  const auto trimmed = read(1);
  EXPECT_TRUE(trimmed.is(ErrorKind::kNotFound));
  EXPECT_THAT(std::string(trimmed.status().message()),
              HasSubstr("step 1 was trimmed: the stream begins at step 2"));
  EXPECT_EQ(as_text(read(2).value().keys), kFew);
}

TEST_F(MembershipTest, TheKeysOfTheLastStepOutliveItsTrim) {
  must_set(0, 1, kMany);
  commit_batches(*session_, Seq(0), 3);
  must_set(3, 2, kFew);
  pin(Step(3), "a");
  run_trim();
  ASSERT_EQ(head().first_step, Step(3));
  EXPECT_EQ(as_text(read(2).value().keys), kMany);
  EXPECT_TRUE(read(1).is(ErrorKind::kNotFound));
  commit_batches(*session_, Seq(3), 1);
  pin(Step(4), "b");
  ASSERT_EQ(unpin(*other_, "g", "a", {}).value(), 1u);
  run_trim();
  EXPECT_THAT(head().memberships, SizeIs(1));
  EXPECT_TRUE(read(2).is(ErrorKind::kNotFound));
  EXPECT_EQ(as_text(read(3).value().keys), kFew);
}

TEST_F(MembershipTest, SettingTheSameAgainCommitsAndStoresNothing) {
  must_set(0, 1, kMany);
  const auto again = set(0, 1, kMany).value();
  EXPECT_FALSE(again.committed);
  EXPECT_EQ(again.head->head, head());
  EXPECT_THAT(membership_objects(), SizeIs(1));
  commit_batches(*session_, Seq(0), 2);
  EXPECT_FALSE(set(0, 1, kMany).value().committed) << "though step 0 is committed by now";
  EXPECT_FALSE(set(2, 1, kMany).value().committed) << "it holds there";
}

TEST_F(MembershipTest, CommittedStepsKeepTheirs) {
  must_set(0, 1, kFew);
  commit_batches(*session_, Seq(0), 3);
  const auto refused = set(2, 2, kMany);
  EXPECT_TRUE(refused.is(ErrorKind::kInvalid));
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("cannot change from step 2 on: steps below 3 are committed"));
  EXPECT_THAT(membership_objects(), IsEmpty());
  must_set(3, 2, kMany);
  EXPECT_EQ(read(2).value().digest.low, 1u);
  EXPECT_EQ(read(3).value().digest.low, 2u);
  expect_sound();
}

TEST_F(MembershipTest, WhatIsNotInForceIsReplaced) {
  must_set(0, 1, kFew);
  must_set(5, 2, kMany);
  must_set(5, 3, "and more, too, of them beside");
  EXPECT_THAT(head().memberships, SizeIs(2));
  EXPECT_EQ(read(9).value().digest.low, 3u);
  expect_sound();
}

TEST_F(MembershipTest, ManyKeysMakeNoLargeHead) {
  const std::string most(kMembershipMaxBytes, 'k');
  must_set(0, 1, most);
  EXPECT_EQ(as_text(read(0).value().keys), most);
  EXPECT_LT(encode_head(stream_->uuid(), head()).bytes.size(), 1000u);
  const auto refused = set(0, 2, most + "k");
  EXPECT_TRUE(refused.is(ErrorKind::kInvalid));
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("keys of 16777217 bytes; at most 16777216 are allowed"));
}

TEST_F(MembershipTest, AFullHeadTakesNoMore) {
  std::uint64_t step = 0;
  Result<EditReceipt> last = set(step, step, kMany);
  while (last.is_ok()) {
    ++step;
    last = set(step, step, kMany);
  }
  EXPECT_TRUE(last.is(ErrorKind::kExhausted)) << last.status().to_string();
  EXPECT_GT(step, 20u);
  EXPECT_THAT(membership_objects(), SizeIs(step)) << "nothing is stored in vain";
  // As in use: they hold from ever later steps on, and trims make room.
  commit_batches(*session_, Seq(0), 10);
  pin(Step(10));
  run_trim();
  EXPECT_TRUE(set(step, step, kMany).is_ok());
  expect_sound();
}

TEST_F(MembershipTest, AFencedSessionDoesNotSetIt) {
  open_session(*other_, "p");
  EXPECT_TRUE(set(0, 1, kMany).is(ErrorKind::kFenced));
  EXPECT_THAT(membership_objects(), IsEmpty());
  session_ = open_session(*stream_, "p");
  next_put("m/", Answer::kPass, [this] { open_session(*other_, "p"); });
  EXPECT_TRUE(set(0, 1, kMany).is(ErrorKind::kFenced)) << "fenced before its put";
  EXPECT_THAT(head().memberships, IsEmpty());
  EXPECT_EQ(Reclaimer(*other_).run({})->memberships_removed, 1u);
}

TEST_F(MembershipTest, AFinishedSessionDoesNotSetIt) {
  must_set(0, 1, kFew);
  ASSERT_TRUE(session_->finish({}).is_ok());
  EXPECT_TRUE(set(0, 1, kFew).is_ok()) << "it holds already";
  const auto refused = set(0, 2, kFew);
  EXPECT_TRUE(refused.is(ErrorKind::kInvalid));
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("producer p: it finished"));
}

TEST_F(MembershipTest, AnEndedStreamTakesIt) {
  ASSERT_TRUE(end_stream(*other_, {}).is_ok());
  EXPECT_TRUE(set(0, 1, kFew).is_ok());
}

TEST_F(MembershipTest, ALostReplyIsSettled) {
  next_put("m/", Answer::kLostReply);
  const auto receipt = set(0, 1, kMany);
  ASSERT_TRUE(receipt.is_ok()) << receipt.status().to_string();
  EXPECT_THAT(head().memberships, SizeIs(1));
  EXPECT_THAT(membership_objects(), SizeIs(1));
}

TEST_F(MembershipTest, ALostRaceStoresTheKeysOnce) {
  next_put("m/", Answer::kPass, [this] { open_session(*other_, "q"); });
  must_set(0, 1, kMany);
  EXPECT_THAT(membership_objects(), SizeIs(1));
  expect_sound();
}

TEST_F(MembershipTest, AnotherBatchSettlesKeysThatWereNotNamed) {
  // A commit of this very session is on its way when the keys are stored, and comes first.
  const std::array batch = {upload_batch(*session_, Seq(0))};
  next_put("m/", Answer::kPass, [&] {
    ASSERT_TRUE(session_->commit(batch, {}).is_ok());
    EXPECT_EQ(Reclaimer(*other_).run({})->memberships_removed, 1u) << "none can name it any more";
  });
  must_set(5, 1, kMany);
  EXPECT_THAT(membership_objects(), SizeIs(1));
  EXPECT_EQ(head().memberships[0].ref->seq, Seq(1));
  EXPECT_EQ(as_text(read(5).value().keys), kMany);
  expect_sound();
}

TEST_F(MembershipTest, WithoutTheTermCheckAStaleSessionSetsIt) {
  const auto careless = open_stream(
      {.limits = tiny_limits(), .safeguards = {.broken = Safeguard::kTermCheck, .on_use = {}}});
  const auto stale = open_session(*careless, "r");
  open_session(*other_, "r");
  ASSERT_TRUE(stale->set_membership(membership(0, 1, kFew), {}).is_ok());
  const auto report = verify_stream(*other_, VerifyDepth::kManifest, {}).value();
  EXPECT_THAT(report.problems, testing::ElementsAre(HasSubstr("of r, which had term")));
}

TEST_F(MembershipTest, NamesDamagedKeys) {
  must_set(0, 1, kMany);
  const std::string key = membership_objects().at(0);
  const Bytes sound = memory_.get(key, {}, {}).value()->bytes;
  put(key, Bytes(sound.begin(), sound.end() - 1));
  const auto damaged = read(0);
  EXPECT_TRUE(damaged.is(ErrorKind::kCorruption));
  EXPECT_THAT(std::string(damaged.status().message()), StartsWith(key + ": at byte 24: truncated"));
  Bytes longer = sound;
  longer.push_back(std::byte{0});
  put(key, longer);
  EXPECT_THAT(std::string(read(0).status().message()), HasSubstr("too long"));
  ASSERT_TRUE(memory_.remove(std::span(&key, 1), {}).is_ok());
  EXPECT_THAT(std::string(read(0).status().message()),
              StartsWith(key + ": missing, though slot 3 names it"));
  EXPECT_TRUE(read(0).is(ErrorKind::kCorruption));
}

TEST_F(MembershipTest, KeysThatGoWhileTheyAreReadAreReadAnew) {
  must_set(0, 1, kMany);
  const std::string key = membership_objects().at(0);
  objects_.next({.operation = Operation::kGet, .prefix = key, .before = [&] {
                   must_set(0, 2, "others that stand beside");
                   commit_batches(*session_, Seq(0), 1);
                   ASSERT_EQ(Reclaimer(*other_).run({})->memberships_removed, 1u);
                 }});
  const Membership found = read(0).value();
  EXPECT_EQ(found.digest.low, 2u);
  EXPECT_EQ(as_text(found.keys), "others that stand beside");
}

TEST_F(MembershipTest, StoppedAtAnyRequestItIsSetOrNot) {
  for (std::size_t number = 0;; ++number) {
    SCOPED_TRACE(testing::Message() << "request " << number);
    objects_.forget_requests();
    objects_.answer_request(number, Answer::kForbidden);
    const auto receipt = set(number, number, kMany);
    expect_sound();
    const Head now = head();
    const bool is_set = now.membership_at(Step(number)) != nullptr &&
                        now.membership_at(Step(number))->from_step == Step(number);
    EXPECT_TRUE(is_set || !receipt.is_ok());
    if (receipt.is_ok()) break;
    EXPECT_TRUE(receipt.is(ErrorKind::kInvalid) || receipt.is(ErrorKind::kUnknownOutcome));
  }
  EXPECT_GE(objects_.requests().size(), 3u);
}

}  // namespace
}  // namespace batchloom::store
