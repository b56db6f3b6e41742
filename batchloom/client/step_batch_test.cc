// SPDX-License-Identifier: Apache-2.0
#include "batchloom/client/step_batch.h"

#include <gtest/gtest.h>

#include "batchloom/base/hash.h"

namespace batchloom::client {
namespace {

TEST(SamplesHash, IsOverBothNumbersLittleEndian) {
  const Bytes walk =
      to_bytes(std::string_view("\1\2\3\4\5\6\7\x08\x11\x12\x13\x14\x15\x16\x17\x18"));
  EXPECT_EQ(next_samples_hash(0x0807060504030201, 0x1817161514131211), xxh3_64(walk));
}

TEST(SamplesHash, DependsOnEveryStepAndTheirOrder) {
  const auto rolled = [](std::initializer_list<std::uint64_t> digests) {
    std::uint64_t hash = 0;
    for (const std::uint64_t digest : digests) hash = next_samples_hash(hash, digest);
    return hash;
  };
  EXPECT_NE(rolled({1, 2}), rolled({2, 1}));
  EXPECT_NE(rolled({1, 2}), rolled({1}));
  EXPECT_NE(rolled({1, 2}), rolled({1, 2, 2}));
}

TEST(StepBatch, PayloadIsWhatItsPiecesHold) {
  const Bytes bytes(100);
  const ByteSpan all = bytes;
  store::RunPiece piece;
  piece.tokens = all.first(40);
  piece.next_token = all.first(4);
  piece.labels = {{0, 1}, {4, 9}};
  piece.tensors = {{.token = 1, .info = {}, .bytes = all.first(30)},
                   {.token = 2, .info = {}, .bytes = all.first(7)}};
  StepBatch batch;
  EXPECT_EQ(batch.payload_bytes(), 0U);
  batch.micro_batches.resize(2);
  batch.micro_batches[0].pieces = {piece, piece};
  EXPECT_EQ(batch.payload_bytes(), 2 * (40 + 4 + 16 + 37U));
}

}  // namespace
}  // namespace batchloom::client
