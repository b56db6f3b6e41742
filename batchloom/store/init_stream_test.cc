// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/floor.h"
#include "batchloom/store/store_fixture_testing.h"

namespace batchloom::store {
namespace {

using objstore::Operation;
using objstore::PutCondition;

/// An empty bucket.
class InitStream : public testing::Test {
 protected:
  Result<InitResult> init() { return init_stream({runtime_, objects_, counters_}, "test 1", {}); }
  /// Another process, without faults.
  Result<InitResult> other_init() { return init_stream(other_deps(), "test 2", {}); }
  StreamDeps other_deps() { return {runtime_, memory_, counters_}; }
  std::unique_ptr<Stream> open() { return Stream::open(other_deps(), {}, {}).value(); }
  void remove(std::string_view key) {
    const std::string name(key);
    ASSERT_TRUE(memory_.remove(std::span(&name, 1), {}).is_ok());
  }
  /// A stream that works.
  void expect_usable() {
    const auto stream = open();
    commit_batches(*open_session(*stream, "p"), Seq(0), 2);
    const auto content = read_whole_stream(*stream);
    ASSERT_TRUE(content.is_ok()) << content.status().to_string();
    EXPECT_EQ(content->entries.size(), 2u);
    EXPECT_EQ(content->head->head.slot, Slot(3));
  }

  SeededRuntime runtime_;
  objstore::MemoryStore memory_{runtime_};
  ScriptedStore objects_{memory_};
  Counters counters_;
};

TEST_F(InitStream, MakesFormatGenesisAndFloorInThisOrder) {
  const auto made = init();
  ASSERT_TRUE(made.is_ok()) << made.status().to_string();
  EXPECT_TRUE(made->created);
  std::vector<std::string> puts;
  for (const Request& request : objects_.requests()) {
    if (request.operation == Operation::kPut) puts.push_back(request.key);
  }
  EXPECT_EQ(puts, (std::vector<std::string>{"FORMAT", manifest_key(Slot(1)), "gc/floor"}));
  EXPECT_EQ(open()->uuid(), made->uuid);
  EXPECT_EQ(open()->format().created_by, "test 1");
  EXPECT_EQ(read_floor(*open(), {}).value(), Slot(0));
  const Head genesis = newest(*open())->head;
  EXPECT_EQ(genesis.slot, Slot(1));
  EXPECT_EQ(genesis.next_step, Step(0));
  EXPECT_EQ(genesis.writer, Writer());
  expect_usable();
}

TEST_F(InitStream, NoTwoStreamsAreTheSame) {
  const StreamUuid first = init()->uuid;
  for (const std::string_view key : {"FORMAT", "gc/floor"}) remove(key);
  remove(manifest_key(Slot(1)));
  EXPECT_NE(init()->uuid, first);
}

TEST_F(InitStream, RepeatedKeepsWhatIsThere) {
  const InitResult first = init().value();
  commit_batches(*open_session(*open(), "p"), Seq(0), 2);
  objects_.forget_requests();
  const InitResult second = init().value();
  EXPECT_FALSE(second.created);
  EXPECT_EQ(second.uuid, first.uuid);
  EXPECT_EQ(objects_.count(Operation::kPut), 1u) << "of FORMAT, which was there";
  EXPECT_EQ(newest(*open())->head.next_step, Step(2));
}

TEST_F(InitStream, OpenWithoutAStreamIsNotFound) {
  EXPECT_TRUE(Stream::open(other_deps(), {}, {}).is(ErrorKind::kNotFound));
}

TEST_F(InitStream, AStoreWithoutConditionsIsRefused) {
  objects_.set_capabilities({.conditional_create = true, .conditional_replace = false});
  EXPECT_TRUE(init().is(ErrorKind::kInvalid));
  objects_.set_capabilities({.conditional_create = false, .conditional_replace = true});
  EXPECT_TRUE(init().is(ErrorKind::kInvalid));
  EXPECT_TRUE(objects_.requests().empty());
}

TEST_F(InitStream, AFloorThatIsMissingBesideSlotsIsCorruption) {
  ASSERT_TRUE(init().is_ok());
  commit_batches(*open_session(*open(), "p"), Seq(0));
  remove(kFloorKey);
  EXPECT_TRUE(init().is(ErrorKind::kCorruption));
  EXPECT_FALSE(memory_.head(kFloorKey, {}).value()) << "damage is not painted over";
  const Status opened = Stream::open(other_deps(), {}, {}).status();
  EXPECT_TRUE(opened.is(ErrorKind::kCorruption)) << opened.to_string();
  EXPECT_NE(opened.message().find("gc/floor"), std::string::npos);
}

TEST_F(InitStream, BesideTheFormatOfAnotherStreamNothingBegins) {
  ASSERT_TRUE(init().is_ok());
  StreamFormat foreign = read_format(memory_, {}).value();
  foreign.uuid.bytes.front() = static_cast<std::byte>(~foreign.uuid.bytes.front());
  ASSERT_TRUE(objstore::put_bytes(memory_, kFormatKey, encode_format(foreign),
                                  objstore::PutCondition::none(), {})
                  .is_ok());
  const Status opened = Stream::open(other_deps(), {}, {}).status();
  EXPECT_TRUE(opened.is(ErrorKind::kCorruption)) << opened.to_string();
  EXPECT_NE(opened.message().find("gc/floor"), std::string::npos) << opened.to_string();
  EXPECT_TRUE(Stream::open(other_deps(), {.even_damaged = true}, {}).is_ok());
}

TEST_F(InitStream, AFormatThatIsMissingBesideAStreamIsCorruption) {
  ASSERT_TRUE(init().is_ok());
  commit_batches(*open_session(*open(), "p"), Seq(0));
  remove(kFormatKey);
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(init().is(ErrorKind::kCorruption));
    EXPECT_FALSE(memory_.head(kFormatKey, {}).value()) << "no second identity";
  }
}

TEST_F(InitStream, SomethingElseCalledFormatIsCorruption) {
  ASSERT_TRUE(objstore::put_bytes(memory_, kFormatKey, as_bytes("hello"), PutCondition::none(), {})
                  .is_ok());
  EXPECT_TRUE(init().is(ErrorKind::kCorruption));
}

/// Runs an init that fails at request number `number`; false where it has no such request.
class InterruptedInit : public InitStream, public testing::WithParamInterface<Answer> {};

TEST_P(InterruptedInit, IsCompletedByTheNext) {
  for (std::size_t number = 0;; ++number) {
    SCOPED_TRACE(testing::Message() << "request " << number);
    objstore::MemoryStore memory(runtime_);
    ScriptedStore objects(memory);
    objects.answer_request(number, GetParam());
    const StreamDeps plain{runtime_, memory, counters_};
    const auto first = init_stream({runtime_, objects, counters_}, "first", {});
    const auto second = init_stream(plain, "second", {});
    ASSERT_TRUE(second.is_ok()) << second.status().to_string();
    const auto stream = Stream::open(plain, {}, {}).value();
    EXPECT_EQ(stream->uuid(), second->uuid);
    if (first.is_ok()) {
      EXPECT_EQ(first->uuid, second->uuid);
      EXPECT_FALSE(second->created);
    }
    commit_batches(*open_session(*stream, "p"), Seq(0));
    EXPECT_TRUE(read_whole_stream(*stream).is_ok());
    if (number >= objects.requests().size()) break;
    EXPECT_LT(number, 20u);
  }
}

INSTANTIATE_TEST_SUITE_P(Faults, InterruptedInit,
                         testing::Values(Answer::kForbidden, Answer::kDiskFull,
                                         Answer::kUnavailable, Answer::kConflict,
                                         Answer::kLostRequest, Answer::kLostReply));

TEST_F(InitStream, WhatMayWellSucceedIsTriedAgain) {
  for (const Answer answer :
       {Answer::kUnavailable, Answer::kConflict, Answer::kLostRequest, Answer::kLostReply}) {
    for (const std::string key : {"FORMAT", "m/", "gc/"}) {
      objects_.next({.operation = Operation::kPut, .prefix = key, .answer = answer, .times = 2});
    }
    EXPECT_TRUE(init().is_ok());
    EXPECT_TRUE(objects_.script_is_done());
    expect_usable();
    for (const std::string_view key : {"FORMAT", "gc/floor"}) remove(key);
    for (std::uint64_t slot = 1; slot <= 3; ++slot) remove(manifest_key(Slot(slot)));
  }
}

TEST_F(InitStream, AnotherMayComeBeforeAnyRequestAndGoOnCommitting) {
  for (std::size_t number = 0;; ++number) {
    SCOPED_TRACE(testing::Message() << "request " << number);
    objstore::MemoryStore memory(runtime_);
    ScriptedStore objects(memory);
    const StreamDeps plain{runtime_, memory, counters_};
    StreamUuid other;
    objects.before_each([&](std::size_t now) {
      if (now != number) return;
      other = init_stream(plain, "other", {}).value().uuid;
      const auto stream = Stream::open(plain, {}, {}).value();
      commit_batches(*open_session(*stream, "p"), Seq(0), 3);
      remove_slots(*stream, Slot(2));
    });
    const auto made = init_stream({runtime_, objects, counters_}, "test", {});
    ASSERT_TRUE(made.is_ok()) << made.status().to_string();
    if (number >= objects.requests().size()) break;
    EXPECT_EQ(made->uuid, other);
    const auto stream = Stream::open(plain, {}, {}).value();
    EXPECT_EQ(newest(*stream)->head.next_step, Step(3));
    EXPECT_EQ(read_floor(*stream, {}).value(), Slot(2));
    commit_batches(*open_session(*stream, "p"), Seq(3));
    EXPECT_TRUE(read_whole_stream(*stream).is_ok());
  }
}

}  // namespace
}  // namespace batchloom::store
