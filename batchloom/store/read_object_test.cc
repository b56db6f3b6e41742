// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/read_object.h"

#include <gmock/gmock.h>

#include "batchloom/base/real_runtime.h"
#include "batchloom/objstore/forwarding_store_testing.h"
#include "batchloom/objstore/memory_store.h"

namespace batchloom::store {
namespace {

using objstore::ObjectData;

/// Counts the bytes that it hands out.
class CountingStore final : public objstore::ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;
  Result<std::optional<ObjectData>> get(std::string_view key, objstore::ByteRange range,
                                        const CallOptions& call) override {
    auto data = inner_.get(key, range, call);
    if (data.is_ok() && *data) handed_out += (*data)->bytes.size();
    return data;
  }
  std::size_t handed_out = 0;
};

class ReadObject : public testing::Test {
 protected:
  Result<std::optional<std::size_t>> read(std::size_t stored_bytes, std::uint64_t max_bytes) {
    const Bytes bytes(stored_bytes);
    EXPECT_TRUE(
        put_bytes(memory_, "k", bytes, objstore::PutCondition::none(), {})->etag.has_value());
    return read_object(store_, {"k", max_bytes}, {}, [&](const ObjectData& data) {
      ++decoded_;
      has_etag_ = data.etag.has_value();
      return decodes_ ? Result<std::size_t>(data.bytes.size())
                      : Result<std::size_t>(Status::corruption("damaged"));
    });
  }

  std::unique_ptr<Runtime> runtime_ = make_real_runtime();
  objstore::MemoryStore memory_{*runtime_, {}};
  CountingStore store_{memory_};
  bool decodes_ = true;
  bool has_etag_ = false;
  int decoded_ = 0;
};

TEST_F(ReadObject, TakesWhatIsNotTooLarge) {
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{100}}) {
    EXPECT_EQ(read(size, 100).value(), size);
    EXPECT_TRUE(has_etag_) << size;
  }
}

TEST_F(ReadObject, NothingOfAnObjectThatIsTooLargeIsDecoded) {
  const auto value = read(1 << 20, 100);
  EXPECT_TRUE(value.is(ErrorKind::kCorruption));
  EXPECT_EQ(value.status().message(),
            "k: at byte 100: too long: it has 1048576 bytes, at most 100 are possible");
  EXPECT_EQ(decoded_, 0);
  EXPECT_LE(store_.handed_out, 100U * kDecodeAttempts);
}

TEST_F(ReadObject, DamageIsReadAgain) {
  decodes_ = false;
  EXPECT_TRUE(read(10, 100).is(ErrorKind::kCorruption));
  EXPECT_EQ(decoded_, kDecodeAttempts);
}

TEST_F(ReadObject, WhatIsMissingIsNoError) {
  const auto value = read_object(store_, {"none", 100}, {}, [](const ObjectData& data) {
    return Result<std::size_t>(data.bytes.size());
  });
  EXPECT_FALSE(value.value().has_value());
}

}  // namespace
}  // namespace batchloom::store
