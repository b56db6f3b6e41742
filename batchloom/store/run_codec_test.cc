// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/run_codec.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "batchloom/store/batch_object_generated.h"
#include "batchloom/store/batch_testing.h"
#include "batchloom/store/store_testing.h"

namespace batchloom::store {
namespace {

using model::HdpRank;
using model::Phase;

const FrameContext kRunContext{.key = "run", .kind = ObjectKind::kRun, .uuid = &kTestUuid};

/// Rank 1 of a ring with rank 2, then a filler of its own.
RunHeader sample_header() {
  RunHeader header;
  header.identity = test_identity();
  header.position = 1;
  header.rank = HdpRank(1);
  header.token_width = TokenWidth::k16;
  header.samples_digest = 11;
  header.plan_digest = 12;
  header.global_valid_labels = 13;
  header.micro_batches = {{.task = 4, .offload = model::OffloadRatio(9), .members = 2, .pieces = 2},
                          {.task = 6, .offload = model::kOffloadAll, .members = 1, .pieces = 0}};
  header.members = {HdpRank(2), HdpRank(1), HdpRank(1)};
  const model::SampleId id{model::SourceId(1), model::Epoch(2), model::RecordIndex(3),
                           model::PartIndex(4)};
  header.pieces = {{.sample = id,
                    .sample_tokens = 20,
                    .lo = 0,
                    .hi = 5,
                    .first_position = 7,
                    .facts = {3, 1, false, true, 0xabcd}},
                   {.sample = id,
                    .sample_tokens = 20,
                    .lo = 15,
                    .hi = 20,
                    .first_position = 7,
                    .facts = {0, 2, true, false, 0xef}}};
  header.tensors = {{.token = 4, .info = {"pixels", TensorType::kF16, {2, 3}}},
                    {.token = 0, .info = {"pixels", TensorType::kF16, {2, 3}}},
                    {.token = 0, .info = {"scale", TensorType::kF32, {}}}};
  header.events = {
      {0, Phase::kForward}, {1, Phase::kForward}, {1, Phase::kBackward}, {0, Phase::kBackward}};
  return header;
}

Status complaint(const std::function<void(RunHeader&)>& change) {
  RunHeader header = sample_header();
  change(header);
  return decode_run_header(kRunContext, encode_run_header(header).bytes).status();
}

void expect_corrupt_run(const Status& status, std::string_view reason) {
  EXPECT_TRUE(status.is(ErrorKind::kCorruption)) << reason << ": " << status.to_string();
  EXPECT_NE(status.message().find(reason), std::string_view::npos) << status.message();
  EXPECT_EQ(status.message().find("run: at byte "), 0U) << status.message();
}

TEST(RunCodec, AHeaderComesBack) {
  const Encoded encoded = encode_run_header(sample_header());
  EXPECT_EQ(encoded.crc, stated_crc(encoded.bytes));
  const auto decoded = decode_run_header(kRunContext, encoded.bytes);
  ASSERT_TRUE(decoded.is_ok()) << decoded.status().to_string();
  EXPECT_EQ(*decoded, sample_header());
}

TEST(RunCodec, ItIsReadAtAnyAddress) {
  const Bytes framed = encode_run_header(sample_header()).bytes;
  for (std::size_t shift = 1; shift < 8; ++shift) {
    Bytes shifted(shift);
    shifted.insert(shifted.end(), framed.begin(), framed.end());
    const auto decoded = decode_run_header(kRunContext, ByteSpan(shifted).subspan(shift));
    ASSERT_TRUE(decoded.is_ok()) << decoded.status().to_string();
    EXPECT_EQ(*decoded, sample_header());
  }
}

TEST(RunCodec, APieceTakes56BytesAndNothingElseGrowsWithIt) {
  EXPECT_EQ(sizeof(fb::RunPiece), 56U);
  RunHeader header = sample_header();
  const std::size_t before = encode_run_header(header).bytes.size();
  header.pieces.resize(header.pieces.size() + 100, header.pieces[0]);
  EXPECT_EQ(encode_run_header(header).bytes.size(), before + 5600);
}

TEST(RunCodec, TheBoundHolds) {
  RunHeader header = sample_header();
  header.identity.producer.assign(63, 'p');
  for (std::size_t i = 0; i < 50; ++i) {
    EXPECT_LE(encode_run_header(header).bytes.size(), encoded_bound(header));
    header.tensors.push_back({.token = 0, .info = {std::string(1 + i, 'n'), TensorType::kU8, {}}});
    header.tensors.back().info.shape.resize(i % 9, 1);
    header.members.emplace_back(1);
    header.events.push_back({});
    header.micro_batches.push_back({});
  }
}

TEST(RunCodec, PiecesLieInTheirSamples) {
  expect_corrupt_run(complaint([](RunHeader& header) { header.pieces[0].hi = 0; }),
                     "a piece of tokens [0, 0) of 20");
  expect_corrupt_run(complaint([](RunHeader& header) { header.pieces[1].hi = 21; }),
                     "a piece of tokens [15, 21) of 20");
}

TEST(RunCodec, LabelIntervalsFitTheirPiece) {
  EXPECT_TRUE(
      complaint([](RunHeader& header) { header.pieces[0].facts.label_intervals = 3; }).is_ok());
  expect_corrupt_run(
      complaint([](RunHeader& header) { header.pieces[0].facts.label_intervals = 4; }),
      "5 tokens with 4 label intervals; at most 3 are possible");
  expect_corrupt_run(
      complaint([](RunHeader& header) { header.pieces[1].facts.label_intervals = 1; }),
      "at most 0 are possible");
}

TEST(RunCodec, EveryRowIsOwnedOnce) {
  expect_corrupt_run(complaint([](RunHeader& header) { header.micro_batches[1].pieces = 1; }),
                     "1 members and 1 pieces: more than there are");
  expect_corrupt_run(complaint([](RunHeader& header) { header.micro_batches[0].pieces = 1; }),
                     "members or pieces that belong to no micro-batch");
  expect_corrupt_run(complaint([](RunHeader& header) { header.micro_batches[0].members = 4; }),
                     "more than there are");
  expect_corrupt_run(complaint([](RunHeader& header) { header.members.emplace_back(1); }),
                     "belong to no micro-batch");
  expect_corrupt_run(complaint([](RunHeader& header) { header.pieces[1].facts.tensors = 1; }),
                     "tensors that belong to no piece");
  expect_corrupt_run(complaint([](RunHeader& header) { header.pieces[1].facts.tensors = 3; }),
                     "a piece with 3 tensors; 2 are left");
}

TEST(RunCodec, TensorsBelongToTokensOfThePiece) {
  expect_corrupt_run(complaint([](RunHeader& header) { header.tensors[0].token = 5; }),
                     "a tensor of token 5; expected one of [0, 5)");
  expect_corrupt_run(complaint([](RunHeader& header) { header.tensors[1].token = 1; }),
                     "a tensor of token 0; expected one of [1, 5)");
  expect_corrupt_run(complaint([](RunHeader& header) { header.tensors[0].info.shape = {0}; }),
                     "a dimension of 0 elements");
  expect_corrupt_run(
      complaint([](RunHeader& header) { header.tensors[0].info.name.assign(64, 'x'); }),
      "a tensor with a name of 64 bytes");
}

TEST(RunCodec, TheRankIsInItsRings) {
  expect_corrupt_run(complaint([](RunHeader& header) { header.rank = HdpRank(2); }),
                     "rank 2 is not in the ring of its task 6");
  expect_corrupt_run(
      complaint([](RunHeader& header) { header.micro_batches[0].offload.value = 65'537; }),
      "the offload ratio 65537/65536");
}

TEST(RunCodec, EachMicroBatchGoesForwardThenBackward) {
  const auto with_events = [](std::vector<RunEvent> events) {
    return complaint([&](RunHeader& header) { header.events = events; });
  };
  const RunEvent f0{0, Phase::kForward};
  const RunEvent b0{0, Phase::kBackward};
  const RunEvent f1{1, Phase::kForward};
  const RunEvent b1{1, Phase::kBackward};
  EXPECT_TRUE(with_events({f1, f0, b0, b1}).is_ok());
  expect_corrupt_run(with_events({f0, b0}), "2 events; 2 micro-batches go forward and backward");
  expect_corrupt_run(with_events({b0, f0, f1, b1}), "micro-batch 0 of 2 goes through phase 1");
  expect_corrupt_run(with_events({f0, b0, f0, b0}), "micro-batch 0 of 2 goes through phase 0");
  expect_corrupt_run(with_events({f0, b0, b0, f1, b1}), "micro-batch 0 of 2 goes through phase 1");
  expect_corrupt_run(with_events({f0, b0, {2, Phase::kForward}, b1}), "micro-batch 2 of 2");
  expect_corrupt_run(with_events({f0, b0, {0, static_cast<Phase>(2)}, f1}), "through phase 2");
}

TEST(RunCodec, TheProducerIsAPossibleOne) {
  expect_corrupt_run(complaint([](RunHeader& header) { header.identity.producer = "P"; }),
                     "a producer's name of 1 bytes with term 3");
  expect_corrupt_run(complaint([](RunHeader& header) { header.identity.term = Term(0); }),
                     "a producer's name of 1 bytes with term 0");
}

/// What no header of ours can be encoded to.
TEST(RunCodec, FlagsAreKnown) {
  const Bytes framed = encode_run_header(sample_header()).bytes;
  Bytes payload(framed.begin() + kFrameBytes, framed.end());
  const auto* piece = flatbuffers::GetRoot<fb::Run>(payload.data())->pieces()->Get(1);
  constexpr std::size_t kFlagsAt = 48;
  ASSERT_EQ(piece->flags(), 1U);
  const auto* flags = reinterpret_cast<const std::byte*>(piece) + kFlagsAt;
  payload[static_cast<std::size_t>(flags - payload.data())] = std::byte{5};
  expect_corrupt_run(
      decode_run_header(kRunContext, encode_frame(ObjectKind::kRun, kTestUuid, payload)).status(),
      "a piece with the unknown flags 5");
}

/// Whatever the payload says in a right frame: a header that encodes to itself, or an error.
TEST(RunCodec, DamagedPayloadInARightFrame) {
  const Bytes framed = encode_run_header(sample_header()).bytes;
  Bytes payload(framed.begin() + kFrameBytes, framed.end());
  for (std::size_t bit = 0; bit < 8 * payload.size(); ++bit) {
    payload[bit / 8] ^= std::byte{1} << (bit % 8);
    const auto decoded =
        decode_run_header(kRunContext, encode_frame(ObjectKind::kRun, kTestUuid, payload));
    if (decoded.is_ok()) {
      const auto again = decode_run_header(kRunContext, encode_run_header(*decoded).bytes);
      EXPECT_TRUE(again.is_ok() && *again == *decoded) << "bit " << bit;
    } else if (!decoded.is(ErrorKind::kInvalid)) {  // A codec from the future.
      expect_corrupt_run(decoded.status(), "");
    }
    payload[bit / 8] ^= std::byte{1} << (bit % 8);
  }
}

}  // namespace
}  // namespace batchloom::store
