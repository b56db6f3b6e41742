// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/upload.h"

#include "batchloom/store/store_fixture_testing.h"

namespace batchloom::store {
namespace {

using objstore::Operation;
using objstore::PutCondition;

constexpr std::string_view kUploadKey = "d/00/object";

class Upload : public StoreTest {
 protected:
  Status upload(const CallOptions& call = {}) {
    const std::array<ByteSpan, 3> parts = {as_bytes("one, "), as_bytes(""), as_bytes("two")};
    return upload_unique(*stream_, kUploadKey, parts, call);
  }
  std::string stored() {
    const auto data = memory_.get(kUploadKey, {}, {}).value();
    return data ? std::string(as_text(data->bytes)) : "(missing)";
  }
  void put_there(std::string_view text) {
    ASSERT_TRUE(
        objstore::put_bytes(memory_, kUploadKey, as_bytes(text), PutCondition::none(), {}).is_ok());
  }
  void next_put(Answer answer, std::function<void()> before = {}) {
    objects_.next({.operation = Operation::kPut, .answer = answer, .before = std::move(before)});
  }
};

TEST_F(Upload, StoresTheConcatenationOnce) {
  EXPECT_TRUE(upload().is_ok());
  EXPECT_EQ(stored(), "one, two");
  EXPECT_EQ(objects_.requests().size(), 1u);
}

TEST_F(Upload, RepeatsUntilItIsSurelyThere) {
  for (const Answer answer : {Answer::kLostRequest, Answer::kConflict, Answer::kUnavailable}) {
    next_put(answer);
    next_put(answer);
  }
  EXPECT_TRUE(upload().is_ok());
  EXPECT_EQ(stored(), "one, two");
  EXPECT_EQ(objects_.count(Operation::kPut), 7u);
}

TEST_F(Upload, ALostReplyIsSettledByItsSize) {
  next_put(Answer::kLostReply);
  EXPECT_TRUE(upload().is_ok());
  EXPECT_EQ(objects_.count(Operation::kPut), 2u);
  EXPECT_EQ(objects_.count(Operation::kHead), 1u);
}

TEST_F(Upload, ALateArrivalIsOurOwn) {
  next_put(Answer::kLostRequest);
  next_put(Answer::kPass, [this] { put_there("one, two"); });
  EXPECT_TRUE(upload().is_ok());
}

TEST_F(Upload, AnotherSizeIsCorruption) {
  put_there("foreign");
  const Status status = upload();
  EXPECT_TRUE(status.is(ErrorKind::kCorruption));
  for (const std::string_view part : {"d/00/object", "7 bytes", "8"}) {
    EXPECT_NE(status.message().find(part), std::string_view::npos) << status.to_string();
  }
  EXPECT_EQ(stored(), "foreign");
}

TEST_F(Upload, WhatVanishesAgainIsPutAgain) {
  put_there("one, two");
  const std::string key(kUploadKey);
  objects_.next({.operation = Operation::kHead,
                 .before = [&] { ASSERT_TRUE(memory_.remove(std::span(&key, 1), {}).is_ok()); }});
  EXPECT_TRUE(upload().is_ok());
  EXPECT_EQ(stored(), "one, two");
  EXPECT_EQ(objects_.count(Operation::kPut), 2u);
}

TEST_F(Upload, ALookThatFailsIsRepeated) {
  next_put(Answer::kLostReply);
  objects_.next({.operation = Operation::kHead, .answer = Answer::kUnavailable});
  EXPECT_TRUE(upload().is_ok());
  EXPECT_EQ(objects_.count(Operation::kPut), 3u);
}

TEST_F(Upload, OtherErrorsEndIt) {
  next_put(Answer::kForbidden);
  const Status forbidden = upload();
  EXPECT_TRUE(forbidden.is(ErrorKind::kInvalid));
  EXPECT_NE(forbidden.message().find("uploading d/00/object"), std::string_view::npos);
  next_put(Answer::kDiskFull);
  EXPECT_TRUE(upload().is(ErrorKind::kExhausted));
  EXPECT_EQ(stored(), "(missing)");
}

TEST_F(Upload, EndsAtTheDeadlineAndWhenStopped) {
  objects_.next({.operation = Operation::kPut, .answer = Answer::kUnavailable, .times = 100});
  EXPECT_TRUE(upload(runtime_.within(std::chrono::milliseconds(100))).is(ErrorKind::kUnavailable));
  std::stop_source stop;
  stop.request_stop();
  EXPECT_TRUE(upload({.stop = stop.get_token()}).is(ErrorKind::kCancelled));
  objects_.forget_script();
}

}  // namespace
}  // namespace batchloom::store
