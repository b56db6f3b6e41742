// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/verify.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "batchloom/base/real_runtime.h"
#include "batchloom/objstore/memory_store.h"
#include "batchloom/store/floor.h"
#include "batchloom/store/head_edit.h"
#include "batchloom/store/producer_session.h"
#include "batchloom/store/read_object.h"
#include "batchloom/store/reclaimer.h"
#include "batchloom/store/scripted_store_testing.h"
#include "batchloom/store/segment_reader.h"
#include "batchloom/store/store_testing.h"
#include "batchloom/store/stream_events.h"
#include "batchloom/store/trim.h"

namespace batchloom::store {
namespace {

using objstore::Operation;
using objstore::PutCondition;
using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;
using testing::StartsWith;

// So small that 20 batches make three levels of segments, and that states lie beside.
constexpr Limits kTinyLimits{
    .tail_entries = 2, .inline_state_max_bytes = 8, .arity = 2, .slots_kept = 4};

class Verify : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(init_stream(deps_, "verify_test", {}).is_ok());
    stream_ = open_stream({});
  }

  std::unique_ptr<Stream> open_stream(const Safeguards& safeguards) {
    auto stream = Stream::open(deps_, {.limits = kTinyLimits, .safeguards = safeguards}, {});
    EXPECT_TRUE(stream.is_ok()) << stream.status().to_string();
    return std::move(stream).value();
  }

  std::unique_ptr<ProducerSession> open_session(const Stream& stream, const std::string& name) {
    auto session = ProducerSession::open(stream, name, {});
    EXPECT_TRUE(session.is_ok()) << session.status().to_string();
    return std::move(session).value();
  }
  std::unique_ptr<ProducerSession> open_session(const std::string& name) {
    return open_session(*stream_, name);
  }

  PendingBatch upload(ProducerSession& session, std::uint64_t seq, std::uint32_t steps = 1) {
    const Bytes body = to_bytes(fmt::format("batch {} of {}", seq, session.producer()));
    const ByteSpan part = body;
    auto batch = session.upload({.seq = Seq(seq), .steps = steps, .ranks = 2, .run_table = {}},
                                std::span(&part, 1), {});
    EXPECT_TRUE(batch.is_ok()) << batch.status().to_string();
    batch->state_after = to_bytes(fmt::format("the state after batch {}", seq));
    return *batch;
  }

  // One commit for each of [first, end).
  void append(ProducerSession& session, std::uint64_t first, std::uint64_t end,
              std::uint32_t steps = 1) {
    for (std::uint64_t seq = first; seq < end; ++seq) {
      const PendingBatch batch = upload(session, seq, steps);
      const auto receipt = session.commit(std::span(&batch, 1), {});
      ASSERT_TRUE(receipt.is_ok()) << receipt.status().to_string();
    }
  }

  // From `step` on, by 300 bytes of keys.
  void set_membership(ProducerSession& session, std::uint64_t step, std::uint64_t digest) {
    const auto set = session.set_membership(
        {.from_step = Step(step), .digest = {.high = 0, .low = digest}, .keys = Bytes(300)}, {});
    ASSERT_TRUE(set.is_ok()) << set.status().to_string();
  }

  // 20 entries of two producers, one of them fenced midway and the other finished: 23 steps. The
  // newest slot is 25: genesis, 3 fences, 20 commits, 1 finish.
  void grow() {
    append(*open_session("a"), 0, 8);
    const auto b = open_session("b");
    append(*b, 0, 3, 2);
    append(*open_session("a"), 8, 17);
    ASSERT_TRUE(b->finish({}).is_ok());
  }

  VerifyReport verify() {
    auto report = verify_stream(*stream_, VerifyDepth::kManifest, {});
    EXPECT_TRUE(report.is_ok()) << report.status().to_string();
    EXPECT_THAT(report->problems, Each(MatchesRegex("[^ ]+: (at byte [0-9]+: |missing, ).+")));
    return std::move(report).value();
  }

  std::vector<std::string> keys(std::string_view prefix) {
    std::vector<std::string> keys;
    const auto listing = bucket_.list(prefix, "", {});
    EXPECT_TRUE(listing.is_ok());
    for (;;) {
      const auto page = (*listing)->next_page({});
      EXPECT_TRUE(page.is_ok());
      if (page->empty()) break;
      for (const auto& object : *page) keys.push_back(object.key);
    }
    std::ranges::sort(keys);
    return keys;
  }
  Bytes get(const std::string& key) { return (**bucket_.get(key, {}, {})).bytes; }
  void put(const std::string& key, const Bytes& bytes) {
    ASSERT_TRUE(objstore::put_bytes(bucket_, key, bytes, PutCondition::none(), {}).is_ok());
  }
  void remove(const std::string& key) {
    ASSERT_TRUE(bucket_.remove(std::span(&key, 1), {}).is_ok());
  }
  StoredHead head(std::uint64_t slot) {
    return *decode_head(stream_->uuid(), Slot(slot), get(manifest_key(Slot(slot))));
  }
  // Writes a head that has a right frame and breaks a rule.
  void forge(const Head& head) {
    put(manifest_key(head.slot), encode_head(stream_->uuid(), head).bytes);
  }

  Head newest_head() { return ManifestReader(*stream_).latest({}).value()->head; }

  void edit(const HeadEdit& edit) {
    ManifestReader reader(*stream_);
    ASSERT_TRUE(commit_edit(*stream_, reader, edit, {}).is_ok());
  }
  void trim_to(Step step) {
    edit([&](const Head& head) { return std::optional(propose_trim_intent(head, step)); });
    edit([&](const Head& head) { return std::optional(complete_trim(head, step, {})); });
  }
  // Removes every batch and every segment that holds trimmed steps alone.
  void remove_trimmed() {
    const Head head = newest_head();
    SegmentReader segments(*stream_);
    std::set<std::string> needed;
    for (Step step = head.first_step; step < head.next_step; ++step) {
      needed.insert(data_key(segments.find(head, step, {}).value().object()));
    }
    const Status walked = segments.for_each_ref(head, {}, [&](const SegmentRef& ref) {
      needed.insert(segment_key(ref.name()));
      return Status::ok();
    });
    ASSERT_TRUE(walked.is_ok());
    for (const std::string_view prefix : {kDataPrefix, kSegmentPrefix}) {
      for (const std::string& key : keys(prefix)) {
        if (!needed.contains(key) && !key.ends_with(".state")) remove(key);
      }
    }
  }

  std::unique_ptr<Runtime> runtime_ = make_real_runtime();
  objstore::MemoryStore bucket_{*runtime_, {.page_size = 3}};
  ScriptedStore objects_{bucket_};
  Counters counters_;
  StreamDeps deps_{*runtime_, objects_, counters_};
  std::unique_ptr<Stream> stream_;
};

TEST_F(Verify, FindsAFreshStreamSound) {
  const VerifyReport report = verify();
  EXPECT_THAT(report.problems, IsEmpty());
  EXPECT_EQ(report.floor, Slot(0));
  EXPECT_EQ(report.newest, Slot(1));
  EXPECT_EQ(report.slots, 1u);
  EXPECT_EQ(report.entries, 0u);
}

TEST_F(Verify, CountsWhatStandsInAStream) {
  grow();
  const VerifyReport report = verify();
  EXPECT_THAT(report.problems, IsEmpty());
  EXPECT_TRUE(report.complete);
  EXPECT_EQ(report.newest, Slot(25));
  EXPECT_EQ(report.slots, 25u);
  EXPECT_EQ(report.leftovers, 0u);
  EXPECT_EQ(report.next_step, Step(23));
  EXPECT_EQ(report.entries, 20u);
  EXPECT_EQ(report.steps, 23u);
  EXPECT_EQ(report.batch_bytes, 13 * 12u + 7 * 13u);  // "batch 9 of a", "batch 10 of a".
  EXPECT_EQ(report.producers, 2u);
  ASSERT_GE(report.segments.size(), 3u);
  EXPECT_EQ(report.segments[0], 9u);
  EXPECT_EQ(report.orphans.segments, 0u);
  EXPECT_EQ(report.orphans.batches, 0u);
  EXPECT_EQ(report.orphans.states, 18u);  // Each producer's newest one is in use.
  EXPECT_THAT(report.foreign, IsEmpty());
}

TEST_F(Verify, CountsLeftoversBelowTheFloor) {
  grow();
  const Bytes old = get(manifest_key(Slot(3)));
  ASSERT_TRUE(Reclaimer(*stream_).run({}).is_ok());
  put(manifest_key(Slot(3)), old);
  const VerifyReport report = verify();
  EXPECT_THAT(report.problems, IsEmpty());
  EXPECT_EQ(report.floor, Slot(21));
  EXPECT_EQ(report.slots, 4u);
  EXPECT_EQ(report.leftovers, 1u);
  EXPECT_EQ(report.entries, 20u);
  EXPECT_EQ(report.orphans.states, 0u);
}

TEST_F(Verify, CountsOrphansByKindAndListsForeignKeys) {
  append(*open_session("a"), 0, 1);
  const StreamInventory::Counts before = verify().orphans;
  upload(*open_session("a"), 1);
  put(data_key({DataKind::kState, "gone", Term(2), Seq(0), Nonce(7)}), to_bytes("x"));
  put(segment_key({Slot(2), 0, Nonce(1)}), to_bytes("x"));
  put(segment_key({Slot(2), 1, Nonce(1)}), to_bytes("x"));
  put("m/2", to_bytes("x"));
  put("d/00/notes.txt", to_bytes("x"));
  const VerifyReport report = verify();
  EXPECT_THAT(report.problems, IsEmpty());
  EXPECT_EQ(report.orphans.batches - before.batches, 1u);
  EXPECT_EQ(report.orphans.states - before.states, 1u);
  EXPECT_EQ(report.orphans.segments - before.segments, 2u);
  EXPECT_THAT(report.foreign, ElementsAre("d/00/notes.txt", "m/2"));
}

TEST_F(Verify, LetsADroppedProducerBeginAgain) {
  append(*open_session("a"), 0, 2);
  ASSERT_TRUE(open_session("a")->finish({}).is_ok());
  // As a fence with a full table would: the row of the finished one goes.
  Head next = head(6).head;
  next.slot = Slot(7);
  next.previous_crc = head(6).crc;
  next.writer = {.producer = "b", .term = Term(7)};
  next.producers[0] = ProducerRow();
  next.producers[0].producer = "b";
  next.producers[0].term = Term(7);
  next.producers[0].last_slot = Slot(7);
  forge(next);
  append(*open_session("a"), 0, 2);
  EXPECT_THAT(verify().problems, IsEmpty());
}

// Whatever is done to a live object, the report names its key, and blames no other.
TEST_F(Verify, NamesEveryDamagedObject) {
  grow();
  set_membership(*open_session("a"), 30, 1);
  ASSERT_TRUE(Reclaimer(*stream_).run({}).is_ok());
  ASSERT_THAT(verify().problems, IsEmpty());
  std::vector<std::string> live = keys("");
  std::erase(live, "FORMAT");  // Read when the stream is opened.
  // The floor, 4 slots, 9 segments with entries and those above them, 20 batches, 2 states, and
  // the keys of a membership.
  ASSERT_GE(live.size(), 1u + 4 + 9 + 3 + 20 + 2 + 1);
  for (const std::string& key : live) {
    SCOPED_TRACE(key);
    const Bytes sound = get(key);
    const auto expect_named = [&](const std::string& reason) {
      EXPECT_THAT(verify().problems, ElementsAre(StartsWith(key + ": " + reason)));
    };
    put(key, {});
    const bool is_batch = key.ends_with(".tgb");
    expect_named("at byte 0: the object is empty");
    put(key, Bytes(sound.begin(), sound.end() - 1));
    expect_named(is_batch ? fmt::format("at byte {}: truncated", sound.size() - 1)
                          : "at byte 24: truncated");
    Bytes longer = sound;
    longer.resize(sound.size() + 1);
    put(key, longer);
    // Of data and segments the manifest says the size.
    const bool is_sized = key.starts_with(kDataPrefix) || key.starts_with(kSegmentPrefix);
    expect_named(fmt::format("at byte {}: too long", is_sized ? sound.size() : 24));
    longer.resize(kHeadMaxBytes + 1);
    put(key, longer);
    const std::size_t largest =
        key.starts_with(kManifestPrefix) ? kHeadMaxBytes : kSmallObjectMaxBytes;
    expect_named(fmt::format("at byte {}: too long", is_sized ? sound.size() : largest));
    if (!is_batch) {
      const auto frame = decode_frame({key, ObjectKind(load_le<std::uint16_t>(&sound[4]))}, sound);
      put(key, encode_frame(ObjectKind(load_le<std::uint16_t>(&sound[4])), test_uuid(9),
                            frame->payload));
      expect_named("at byte 8: belongs to stream");
      for (std::size_t i = 0; i < sound.size(); i += i < kFrameBytes ? 1 : 5) {
        Bytes flipped = sound;
        flipped[i] ^= std::byte{16};
        put(key, flipped);
        expect_named("at byte ");
      }
    }
    remove(key);
    // Without its newest slot the stream is an older one.
    if (key != manifest_key(Slot(27))) expect_named("missing");
    put(key, sound);
  }
  EXPECT_THAT(verify().problems, IsEmpty());
}

TEST_F(Verify, MissesNothingThatWasTrimmed) {
  grow();
  for (Step step(0); step <= Step(23); ++step) {
    SCOPED_TRACE(step.value);
    trim_to(step);
    EXPECT_THAT(verify().problems, IsEmpty());
    remove_trimmed();
    const VerifyReport report = verify();
    EXPECT_THAT(report.problems, IsEmpty());
    EXPECT_TRUE(report.complete);
    EXPECT_EQ(report.first_step, step);
    EXPECT_EQ(report.trimmed.batches, 0u);
    EXPECT_EQ(report.trimmed.segments, 0u);
  }
  EXPECT_THAT(keys(kSegmentPrefix), IsEmpty());
  append(*open_session("a"), 17, 25);
  EXPECT_THAT(verify().problems, IsEmpty());
}

TEST_F(Verify, MissesAllThatWasNotTrimmed) {
  grow();
  trim_to(Step(9));  // Amid a pack: that of steps 8 and 9.
  remove_trimmed();
  SegmentReader segments(*stream_);
  const Head trimmed = newest_head();
  for (Step step = trimmed.first_step; step < trimmed.next_step;) {
    const Entry entry = *segments.find(trimmed, step, {});
    const std::string key = data_key(entry.object());
    const Bytes body = get(key);
    remove(key);
    EXPECT_THAT(verify().problems,
                ElementsAre(AllOf(HasSubstr(key), HasSubstr("missing, though step"))));
    put(key, body);
    step = entry.end_step();
  }
  for (const std::string& key : keys(kSegmentPrefix)) {
    const Bytes body = get(key);
    remove(key);
    EXPECT_THAT(verify().problems, Contains(AllOf(HasSubstr(key), HasSubstr("missing, though"))));
    put(key, body);
  }
}

TEST_F(Verify, CountsWhatATrimLeavesToBeReclaimed) {
  grow();
  const VerifyReport before = verify();
  trim_to(Step(3));  // Entries of one step in segments of two, which stand in larger ones.
  const VerifyReport report = verify();
  EXPECT_THAT(report.problems, IsEmpty());
  EXPECT_EQ(report.trimmed.batches, 3u);
  EXPECT_EQ(report.trimmed.segments, 1u);
  EXPECT_EQ(report.segments[0], before.segments[0] - 1);
  EXPECT_EQ(report.orphans.batches, 0u);
  trim_to(Step(23));
  const VerifyReport emptied = verify();
  EXPECT_EQ(emptied.trimmed.batches, 0u) << "nothing refers to them any more";
  EXPECT_EQ(emptied.orphans.batches, 20u);
  EXPECT_EQ(emptied.entries, 0u);
}

TEST_F(Verify, NoticesATrimThatNobodyAnnounced) {
  grow();
  Head forged = newest_head();
  forged.first_step = Step(10);
  forge(forged);
  EXPECT_THAT(verify().problems,
              ElementsAre(HasSubstr("first step moves from 0 to 10, although b wrote this slot")));
}

TEST_F(Verify, AcceptsEvents) {
  grow();
  ASSERT_TRUE(skip_step(*stream_, Step(7), {}).is_ok());
  ASSERT_TRUE(set_topology(*stream_, model::Topology::parse("dp=2").value(), {}).is_ok());
  ASSERT_TRUE(end_stream(*stream_, {}).is_ok());
  ASSERT_TRUE(reopen_stream(*stream_, {}).is_ok());
  append(*open_session("a"), 17, 20);
  EXPECT_THAT(verify().problems, IsEmpty());
}

TEST_F(Verify, ReadsTheKeysOfEveryMembership) {
  const auto session = open_session("a");
  for (std::uint64_t step : {0U, 10U, 20U}) set_membership(*session, step, step + 1);
  const std::string named = data_key(newest_head().memberships[1].object());
  set_membership(*session, 20, 77);
  VerifyReport report = verify();
  EXPECT_THAT(report.problems, IsEmpty());
  EXPECT_EQ(report.memberships, 3u);
  EXPECT_EQ(report.orphans.memberships, 1u) << "what was replaced";
  const Bytes sound = get(named);
  put(named, Bytes(sound.begin(), sound.end() - 1));
  EXPECT_THAT(verify().problems, ElementsAre(StartsWith(named + ": at byte 24: truncated")));
  remove(named);
  EXPECT_THAT(verify().problems, ElementsAre(named + ": missing, though the manifest names it"));
}

TEST_F(Verify, ReportsAllProblemsAtOnce) {
  grow();
  for (const std::string& key : keys(kSegmentPrefix)) remove(key);
  for (const std::string& key : keys(kDataPrefix)) put(key, to_bytes("x"));
  put(manifest_key(Slot(5)), to_bytes("x"));
  remove(manifest_key(Slot(7)));
  const VerifyReport report = verify();
  EXPECT_FALSE(report.complete);
  EXPECT_THAT(report.problems, Contains(HasSubstr(manifest_key(Slot(5)))));
  EXPECT_THAT(report.problems, Contains(AllOf(HasSubstr(manifest_key(Slot(7))),
                                              HasSubstr("dense and m/00000000000000000008"))));
  const auto about = [&](std::string_view prefix) {
    return std::ranges::count_if(
        report.problems, [&](const std::string& problem) { return problem.starts_with(prefix); });
  };
  std::ptrdiff_t roots = 0;
  for (const auto& level : head(25).head.segments) roots += std::ssize(level);
  EXPECT_EQ(about(kSegmentPrefix), roots);  // Nothing else can be found without them.
  EXPECT_EQ(about(kDataPrefix), 4);         // The tail's two batches, and the two states.
}

TEST_F(Verify, VerifiesWhatIsLeftWithoutTheNewestHead) {
  grow();
  put(manifest_key(Slot(25)), to_bytes("x"));
  const VerifyReport report = verify();
  EXPECT_THAT(report.problems, ElementsAre(HasSubstr(manifest_key(Slot(25)))));
  EXPECT_FALSE(report.complete);
  EXPECT_EQ(report.entries, 20u);
}

TEST_F(Verify, SaysThatNoSlotIsLeft) {
  remove(manifest_key(Slot(1)));
  EXPECT_THAT(verify().problems,
              ElementsAre(AllOf(HasSubstr(manifest_key(Slot(1))), HasSubstr("missing"))));
}

TEST_F(Verify, NoticesABrokenChain) {
  grow();
  Head forged = head(25).head;
  forged.previous_crc ^= 1;
  forge(forged);
  EXPECT_THAT(verify().problems, ElementsAre(AllOf(HasSubstr(manifest_key(Slot(25))),
                                                   HasSubstr("continues a head with CRC"))));
}

TEST_F(Verify, NoticesAGapBetweenSegmentAndTail) {
  grow();
  Head forged = head(25).head;
  ASSERT_EQ(forged.tail.size(), 2u);
  forged.tail.erase(forged.tail.begin());
  forge(forged);
  EXPECT_THAT(verify().problems,
              AllOf(Contains(HasSubstr("ends at step 21, but what follows it begins at 22")),
                    Contains(HasSubstr("step 22 is batch 16 of a in term 15; expected batch 15"))));
}

TEST_F(Verify, NoticesARowThatDisagreesWithTheEntries) {
  grow();
  Head forged = head(25).head;
  forged.producers[0].next_seq = Seq(30);
  forge(forged);
  EXPECT_THAT(
      verify().problems,
      AllOf(Contains(HasSubstr("batch 30 of a is next, but the stream ends with batch 16 of it")),
            Contains(HasSubstr("a's state is that after batch 16, but batch 30 is next"))));
}

TEST_F(Verify, NoticesABatchThatWasCommittedTwice) {
  const auto broken = open_stream({.broken = Safeguard::kDropRule, .on_use = {}});
  const auto session = open_session(*broken, "a");
  const PendingBatch batch = upload(*session, 0);
  ASSERT_TRUE(session->commit(std::span(&batch, 1), {}).is_ok());
  ASSERT_TRUE(session->commit(std::span(&batch, 1), {}).is_ok());
  EXPECT_THAT(verify().problems, AllOf(Contains(HasSubstr("committed twice")),
                                       Contains(HasSubstr("a batch was committed again"))));
}

TEST_F(Verify, NoticesAFencedSessionThatWentOn) {
  const auto broken = open_stream({.broken = Safeguard::kTermCheck, .on_use = {}});
  const auto old_session = open_session(*broken, "a");
  append(*old_session, 0, 1);
  append(*open_session("a"), 1, 2);
  append(*old_session, 2, 3);
  EXPECT_THAT(verify().problems, AllOf(Contains(HasSubstr("had been fenced in term 4")),
                                       Contains(HasSubstr("a fenced session went on"))));
}

TEST_F(Verify, LooksForAnObjectThatTheListingMissed) {
  grow();
  const std::string key = data_key(head(25).head.tail.back().object());
  const Bytes body = get(key);
  remove(key);
  // The floor is read right after the listing.
  objects_.next(
      {.operation = Operation::kGet, .prefix = "gc/floor", .before = [&] { put(key, body); }});
  EXPECT_THAT(verify().problems, IsEmpty());
  EXPECT_TRUE(objects_.script_is_done());
}

TEST_F(Verify, EndsWithAnErrorThatIsNotAboutDamage) {
  grow();
  objects_.next({.operation = Operation::kGet, .prefix = "m/", .answer = Answer::kForbidden});
  EXPECT_TRUE(verify_stream(*stream_, VerifyDepth::kManifest, {}).is(ErrorKind::kInvalid));
  objects_.next({.operation = Operation::kGet, .prefix = "s/", .answer = Answer::kUnavailable});
  EXPECT_TRUE(verify_stream(*stream_, VerifyDepth::kManifest, {}).is(ErrorKind::kUnavailable));
  objects_.next({.operation = Operation::kList, .prefix = "", .answer = Answer::kUnavailable});
  EXPECT_TRUE(verify_stream(*stream_, VerifyDepth::kManifest, {}).is(ErrorKind::kUnavailable));
}

TEST_F(Verify, ReadsAgainWhatWasDamagedOnTheWay) {
  grow();
  objects_.next({.operation = Operation::kGet, .prefix = "m/", .answer = Answer::kDamaged});
  objects_.next({.operation = Operation::kGet, .prefix = "s/", .answer = Answer::kDamaged});
  EXPECT_THAT(verify().problems, IsEmpty());
  EXPECT_TRUE(objects_.script_is_done());
}

TEST_F(Verify, AsksForQuietWhereTheFloorRises) {
  grow();
  objects_.next({.operation = Operation::kGet, .prefix = "m/", .before = [this] {
                   ASSERT_TRUE(Reclaimer(*stream_).run({}).is_ok());
                 }});
  const auto report = verify_stream(*stream_, VerifyDepth::kManifest, {});
  EXPECT_TRUE(report.is(ErrorKind::kConflict)) << report.status().to_string();
  EXPECT_THAT(std::string(report.status().message()), HasSubstr("rose from 0 to 21"));
}

}  // namespace
}  // namespace batchloom::store
