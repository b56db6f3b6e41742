// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/verify.h"

#include "batchloom/store/read_object.h"
#include "batchloom/store/reclaimer.h"
#include "batchloom/store/stream_events.h"
#include "batchloom/store/verify_testing.h"

namespace batchloom::store {
namespace {

using objstore::Operation;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

TEST_F(VerifyTest, FindsAFreshStreamSound) {
  const VerifyReport report = verify();
  EXPECT_THAT(report.problems, IsEmpty());
  EXPECT_EQ(report.floor, Slot(0));
  EXPECT_EQ(report.newest, Slot(1));
  EXPECT_EQ(report.slots, 1u);
  EXPECT_EQ(report.entries, 0u);
}

TEST_F(VerifyTest, CountsWhatStandsInAStream) {
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

TEST_F(VerifyTest, CountsLeftoversBelowTheFloor) {
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

TEST_F(VerifyTest, CountsOrphansByKindAndListsForeignKeys) {
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

TEST_F(VerifyTest, LetsADroppedProducerBeginAgain) {
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
TEST_F(VerifyTest, NamesEveryDamagedObject) {
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

TEST_F(VerifyTest, MissesNothingThatWasTrimmed) {
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

TEST_F(VerifyTest, MissesAllThatWasNotTrimmed) {
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

TEST_F(VerifyTest, CountsWhatATrimLeavesToBeReclaimed) {
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

TEST_F(VerifyTest, NoticesATrimThatNobodyAnnounced) {
  grow();
  Head forged = newest_head();
  forged.first_step = Step(10);
  forge(forged);
  EXPECT_THAT(verify().problems,
              ElementsAre(HasSubstr("first step moves from 0 to 10, although b wrote this slot")));
}

TEST_F(VerifyTest, AcceptsEvents) {
  grow();
  ASSERT_TRUE(skip_step(*stream_, Step(7), {}).is_ok());
  ASSERT_TRUE(set_topology(*stream_, model::Topology::parse("dp=2").value(), {}).is_ok());
  ASSERT_TRUE(end_stream(*stream_, {}).is_ok());
  ASSERT_TRUE(reopen_stream(*stream_, {}).is_ok());
  append(*open_session("a"), 17, 20);
  EXPECT_THAT(verify().problems, IsEmpty());
}

TEST_F(VerifyTest, ReadsTheKeysOfEveryMembership) {
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

TEST_F(VerifyTest, ReportsAllProblemsAtOnce) {
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

TEST_F(VerifyTest, VerifiesWhatIsLeftWithoutTheNewestHead) {
  grow();
  put(manifest_key(Slot(25)), to_bytes("x"));
  const VerifyReport report = verify();
  EXPECT_THAT(report.problems, ElementsAre(HasSubstr(manifest_key(Slot(25)))));
  EXPECT_FALSE(report.complete);
  EXPECT_EQ(report.entries, 20u);
}

TEST_F(VerifyTest, SaysThatNoSlotIsLeft) {
  remove(manifest_key(Slot(1)));
  EXPECT_THAT(verify().problems,
              ElementsAre(AllOf(HasSubstr(manifest_key(Slot(1))), HasSubstr("missing"))));
}

TEST_F(VerifyTest, LooksForAnObjectThatTheListingMissed) {
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

TEST_F(VerifyTest, EndsWithAnErrorThatIsNotAboutDamage) {
  grow();
  objects_.next({.operation = Operation::kGet, .prefix = "m/", .answer = Answer::kForbidden});
  EXPECT_TRUE(verify_stream(*stream_, VerifyDepth::kManifest, {}).is(ErrorKind::kInvalid));
  objects_.next({.operation = Operation::kGet, .prefix = "s/", .answer = Answer::kUnavailable});
  EXPECT_TRUE(verify_stream(*stream_, VerifyDepth::kManifest, {}).is(ErrorKind::kUnavailable));
  objects_.next({.operation = Operation::kList, .prefix = "", .answer = Answer::kUnavailable});
  EXPECT_TRUE(verify_stream(*stream_, VerifyDepth::kManifest, {}).is(ErrorKind::kUnavailable));
}

TEST_F(VerifyTest, ReadsAgainWhatWasDamagedOnTheWay) {
  grow();
  objects_.next({.operation = Operation::kGet, .prefix = "m/", .answer = Answer::kDamaged});
  objects_.next({.operation = Operation::kGet, .prefix = "s/", .answer = Answer::kDamaged});
  EXPECT_THAT(verify().problems, IsEmpty());
  EXPECT_TRUE(objects_.script_is_done());
}

TEST_F(VerifyTest, AsksForQuietWhereTheFloorRises) {
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
