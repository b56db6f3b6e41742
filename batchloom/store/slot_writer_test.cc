// SPDX-License-Identifier: Apache-2.0
// Every outcome of the put, in every order that matters, against what the slot then holds.
#include "batchloom/store/slot_writer.h"

#include <algorithm>
#include <set>

#include "batchloom/store/store_fixture_testing.h"

namespace batchloom::store {
namespace {

using objstore::Operation;
using std::chrono::milliseconds;

enum class Holder { kNobody, kWe, kOther };

class SlotWriter : public StoreTest {
 protected:
  SlotWriter() : base_(reader_.latest({}).value()), head_(empty_successor(*stream_, base_->head)) {
    objects_.forget_requests();
  }

  Result<SlotOutcome> write(const CallOptions& call = {}) {
    return write_slot(*stream_, reader_, *base_, head_, call);
  }
  void next_put(Answer answer, std::function<void()> before = {}, std::size_t times = 1) {
    objects_.next({.operation = Operation::kPut,
                   .prefix = "m/",
                   .answer = answer,
                   .times = times,
                   .before = std::move(before)});
  }
  /// The next look at the slot after an attempt.
  void next_look(Answer answer, std::function<void()> before = {}, std::size_t times = 1) {
    objects_.next({.operation = Operation::kHead,
                   .prefix = "m/",
                   .answer = answer,
                   .times = times,
                   .before = std::move(before)});
  }
  std::function<void()> other_commits() {
    return [this] { append_slots(*other_, 1); };
  }
  /// Our own put, delayed on its way, takes effect.
  std::function<void()> ours_arrives() {
    return [this] {
      Head chained = head_;
      chained.previous_crc = base_->crc;
      put_head(*other_, chained);
    };
  }
  Holder holder() {
    const auto found = ManifestReader(*other_).at(head_.slot, {}).value();
    if (!found) return Holder::kNobody;
    return (*found)->head.txid == head_.txid ? Holder::kWe : Holder::kOther;
  }
  /// Every put offered the same bytes.
  bool puts_were_identical() const {
    std::set<std::uint64_t> contents;
    for (const Request& request : objects_.requests()) {
      if (request.operation == Operation::kPut) contents.insert(request.content);
    }
    return contents.size() == 1;
  }

  ManifestReader reader_{*stream_};
  HeadPtr base_;
  Head head_;
};

TEST_F(SlotWriter, CommitsAndAdopts) {
  EXPECT_EQ(write().value(), SlotOutcome::kCommitted);
  EXPECT_EQ(objects_.requests().size(), 2u) << "the put and the floor";
  EXPECT_EQ(reader_.cached()->head.txid, head_.txid);
  EXPECT_EQ(reader_.cached()->head.previous_crc, base_->crc);
  EXPECT_EQ(reader_.cached()->crc, newest(*other_)->crc);
  EXPECT_EQ(holder(), Holder::kWe);
  EXPECT_EQ(counted("store_commits"), 1u);
  EXPECT_EQ(counted("store_commit_lost_races"), 0u);
}

TEST_F(SlotWriter, LosesToAnother) {
  next_put(Answer::kPass, other_commits());
  EXPECT_EQ(write().value(), SlotOutcome::kTaken);
  EXPECT_EQ(objects_.requests().size(), 1u) << "taken needs no look";
  EXPECT_EQ(reader_.cached(), base_);
  EXPECT_EQ(holder(), Holder::kOther);
  EXPECT_EQ(counted("store_commits"), 0u);
  EXPECT_EQ(counted("store_commit_lost_races"), 1u);
}

TEST_F(SlotWriter, UnknownThenFoundIsTaken) {
  next_put(Answer::kLostReply);
  EXPECT_EQ(write().value(), SlotOutcome::kTaken);
  EXPECT_EQ(holder(), Holder::kWe);
  EXPECT_EQ(objects_.count(Operation::kPut), 1u);
  EXPECT_EQ(counted("store_commit_unknown"), 1u);
}

TEST_F(SlotWriter, UnknownThenFoundMayBeAnothers) {
  next_put(Answer::kLostRequest);
  next_look(Answer::kPass, other_commits());
  EXPECT_EQ(write().value(), SlotOutcome::kTaken);
  EXPECT_EQ(holder(), Holder::kOther);
}

TEST_F(SlotWriter, UnknownThenMissingIsPutAgain) {
  next_put(Answer::kLostRequest, {}, 3);
  EXPECT_EQ(write().value(), SlotOutcome::kCommitted);
  EXPECT_EQ(objects_.count(Operation::kPut), 4u);
  EXPECT_EQ(objects_.count(Operation::kHead), 3u);
  EXPECT_TRUE(puts_were_identical());
  EXPECT_EQ(holder(), Holder::kWe);
  EXPECT_EQ(counted("store_commit_unknown"), 3u);
}

TEST_F(SlotWriter, UnknownThenMissingThenItArrivesAfterAll) {
  next_put(Answer::kLostRequest);
  next_put(Answer::kPass, ours_arrives());
  EXPECT_EQ(write().value(), SlotOutcome::kTaken) << "condition failed by our own earlier attempt";
  EXPECT_TRUE(puts_were_identical());
  EXPECT_EQ(holder(), Holder::kWe);
}

TEST_F(SlotWriter, UnknownThenMissingThenAnotherTakesIt) {
  next_put(Answer::kLostRequest);
  next_put(Answer::kPass, other_commits());
  EXPECT_EQ(write().value(), SlotOutcome::kTaken);
  EXPECT_EQ(holder(), Holder::kOther);
}

TEST_F(SlotWriter, UnknownTwiceThenFound) {
  next_put(Answer::kLostRequest);
  next_put(Answer::kLostReply);
  EXPECT_EQ(write().value(), SlotOutcome::kTaken);
  EXPECT_EQ(holder(), Holder::kWe);
}

TEST_F(SlotWriter, ConflictThenCreated) {
  next_put(Answer::kConflict, {}, 2);
  EXPECT_EQ(write().value(), SlotOutcome::kCommitted);
  EXPECT_EQ(objects_.count(Operation::kHead), 2u);
  EXPECT_TRUE(puts_were_identical());
  EXPECT_EQ(counted("store_commit_unknown"), 0u);
}

TEST_F(SlotWriter, ConflictThenTaken) {
  next_put(Answer::kConflict, other_commits());
  EXPECT_EQ(write().value(), SlotOutcome::kTaken);
  EXPECT_EQ(objects_.count(Operation::kPut), 1u);
  EXPECT_EQ(holder(), Holder::kOther);
}

TEST_F(SlotWriter, ConflictForEverIsAnErrorAndNothingIsWritten) {
  next_put(Answer::kConflict, {}, 1000);
  const auto outcome = write(runtime_.within(milliseconds(500)));
  EXPECT_TRUE(outcome.is(ErrorKind::kUnavailable)) << outcome.status().to_string();
  EXPECT_EQ(holder(), Holder::kNobody);
  objects_.forget_script();
}

TEST_F(SlotWriter, UnavailableThenCreated) {
  next_put(Answer::kUnavailable, {}, 2);
  EXPECT_EQ(write().value(), SlotOutcome::kCommitted);
  EXPECT_EQ(objects_.count(Operation::kHead), 0u) << "surely not applied: nothing to look for";
}

TEST_F(SlotWriter, UnavailableForEverIsAnErrorAndNothingIsWritten) {
  next_put(Answer::kUnavailable, {}, 1000);
  const auto outcome = write(runtime_.within(milliseconds(500)));
  EXPECT_TRUE(outcome.is(ErrorKind::kUnavailable)) << outcome.status().to_string();
  EXPECT_NE(outcome.status().message().find("committing m/"), std::string_view::npos);
  EXPECT_EQ(holder(), Holder::kNobody);
  objects_.forget_script();
}

TEST_F(SlotWriter, UnavailableForEverAfterAnUnknownIsUnknown) {
  next_put(Answer::kLostRequest);
  next_put(Answer::kUnavailable, {}, 1000);
  const auto outcome = write(runtime_.within(milliseconds(500)));
  EXPECT_TRUE(outcome.is(ErrorKind::kUnknownOutcome)) << outcome.status().to_string();
  objects_.forget_script();
}

TEST_F(SlotWriter, LastingErrorsComeFirst) {
  next_put(Answer::kForbidden);
  EXPECT_TRUE(write().is(ErrorKind::kInvalid));
  next_put(Answer::kDiskFull);
  EXPECT_TRUE(write().is(ErrorKind::kExhausted));
  next_put(Answer::kConflict);
  next_look(Answer::kForbidden);
  EXPECT_TRUE(write().is(ErrorKind::kInvalid));
  EXPECT_EQ(holder(), Holder::kNobody);
}

TEST_F(SlotWriter, LastingErrorsAfterAnUnknownAreUnknown) {
  for (const Answer answer : {Answer::kForbidden, Answer::kDiskFull}) {
    next_put(Answer::kLostRequest);
    next_put(answer);
    EXPECT_TRUE(write().is(ErrorKind::kUnknownOutcome));
  }
  next_put(Answer::kLostReply);
  next_look(Answer::kForbidden);
  const auto outcome = write();
  EXPECT_TRUE(outcome.is(ErrorKind::kUnknownOutcome));
  EXPECT_NE(outcome.status().message().find("invalid"), std::string_view::npos) << "names the why";
  EXPECT_EQ(holder(), Holder::kWe);
}

TEST_F(SlotWriter, ALookThatFailsIsRepeated) {
  next_put(Answer::kLostReply);
  next_look(Answer::kUnavailable);
  EXPECT_EQ(write().value(), SlotOutcome::kTaken);
  EXPECT_EQ(holder(), Holder::kWe);
  EXPECT_TRUE(puts_were_identical());
}

TEST_F(SlotWriter, AStopBeforeAndAfterTheFirstAttempt) {
  std::stop_source stop;
  next_put(Answer::kLostRequest, [&] { stop.request_stop(); });
  EXPECT_TRUE(write({.stop = stop.get_token()}).is(ErrorKind::kUnknownOutcome));
  EXPECT_TRUE(write({.stop = stop.get_token()}).is(ErrorKind::kCancelled));
  EXPECT_EQ(holder(), Holder::kNobody);
}

TEST_F(SlotWriter, ADeadSlotIsNotACommit) {
  append_slots(*other_, 8);
  for (const std::uint64_t floor : {2U, 5U}) {
    remove_slots(*other_, Slot(floor));
    EXPECT_EQ(write().value(), SlotOutcome::kTaken);
    EXPECT_EQ(reader_.cached(), nullptr) << "what it knew is stale";
    EXPECT_TRUE(exists(manifest_key(Slot(2)))) << "left for the reclaimer";
  }
  EXPECT_EQ(counted("store_commit_dead_slots"), 2u);
  EXPECT_EQ(counted("store_commits"), 0u);
  EXPECT_EQ(reader_.latest({}).value()->head.slot, Slot(9));
}

TEST_F(SlotWriter, JustAboveTheFloorItIsACommit) {
  remove_slots(*other_, Slot(1));
  EXPECT_EQ(write().value(), SlotOutcome::kCommitted);
}

TEST_F(SlotWriter, WithoutTheFloorCheckADeadSlotIsTrusted) {
  std::vector<Safeguard> asked;
  const auto broken = open_stream(
      {.limits = tiny_limits(),
       .safeguards = {.broken = Safeguard::kFloorCheck,
                      .on_use = [&](Safeguard safeguard) { asked.push_back(safeguard); }}});
  append_slots(*other_, 8);
  remove_slots(*other_, Slot(5));
  EXPECT_EQ(write_slot(*broken, reader_, *base_, head_, {}).value(), SlotOutcome::kCommitted);
  EXPECT_EQ(asked, std::vector{Safeguard::kFloorCheck});
}

TEST_F(SlotWriter, AFloorThatCannotBeReadSettlesLater) {
  objects_.next({.operation = Operation::kGet, .prefix = "gc/", .answer = Answer::kUnavailable});
  EXPECT_EQ(write().value(), SlotOutcome::kTaken) << "by ourselves";
  EXPECT_EQ(holder(), Holder::kWe);
  EXPECT_EQ(reader_.latest({}).value()->head.txid, head_.txid);
}

TEST_F(SlotWriter, AFloorThatIsNeverReadLeavesItUnknown) {
  objects_.next({.operation = Operation::kGet, .prefix = "gc/", .answer = Answer::kForbidden});
  EXPECT_TRUE(write().is(ErrorKind::kUnknownOutcome));
  EXPECT_EQ(holder(), Holder::kWe);
}

TEST_F(SlotWriter, SlotsAreNotLeftOut) {
  ++head_.slot;
  EXPECT_DEATH(static_cast<void>(write()), "on the head before it");
}

}  // namespace
}  // namespace batchloom::store
