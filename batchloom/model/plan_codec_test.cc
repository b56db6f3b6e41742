// SPDX-License-Identifier: Apache-2.0
#include "batchloom/model/plan_codec.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>

#include "batchloom/model/plan_check.h"
#include "batchloom/model/plan_digest.h"
#include "batchloom/model/plan_generated.h"
#include "batchloom/model/plan_testing.h"

namespace batchloom::model {
namespace {

/// The message of the `corruption` that decoding ends with; empty if it does not.
std::string corruption_in(ByteSpan bytes) {
  const Status status = decode_plan(bytes).status();
  return status.is(ErrorKind::kCorruption) ? std::string(status.message()) : std::string();
}

/// The plan with a digest that fits, as an attacker would store it.
Bytes encode_with_digest(StepPlan plan) {
  plan.digest = plan_digest(plan);
  return encode_plan(plan);
}

RC_GTEST_PROP(PlanCodec, RoundTrips, ()) {
  const StepPlan plan = *any_plan();
  const Bytes bytes = encode_plan(plan);
  RC_ASSERT(decode_plan(bytes).value() == plan);
  RC_ASSERT(encode_plan(decode_plan(bytes).value()) == bytes);
}

TEST(PlanCodec, RoundTripsLevelsAndFillers) {
  const StepPlan plan = small_plan();
  EXPECT_EQ(decode_plan(encode_plan(plan)).value(), plan);
}

TEST(PlanCodec, ReadsFromAnyAddress) {
  const Bytes bytes = encode_plan(small_plan());
  for (std::size_t shift = 0; shift < 8; ++shift) {
    Bytes moved(shift);
    moved.insert(moved.end(), bytes.begin(), bytes.end());
    EXPECT_EQ(decode_plan(ByteSpan(moved).subspan(shift)).value(), small_plan());
  }
}

TEST(PlanCodec, RefusesEveryTruncationThatReachesTheData) {
  const Bytes bytes = encode_plan(small_plan());
  constexpr std::size_t kMostPaddingBytes = 7;
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const Result<StepPlan> decoded = decode_plan(ByteSpan(bytes).first(size));
    if (bytes.size() - size <= kMostPaddingBytes && decoded.is_ok()) continue;
    EXPECT_TRUE(decoded.is(ErrorKind::kCorruption)) << size;
  }
}

TEST(PlanCodec, RefusesEveryFlippedBitOrDoesNotUseIt) {
  const StepPlan plan = small_plan();
  const Bytes bytes = encode_plan(plan);
  std::size_t refused = 0;
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    Bytes damaged = bytes;
    damaged[bit / 8] ^= static_cast<std::byte>(1u << (bit % 8));
    const Result<StepPlan> decoded = decode_plan(damaged);
    if (decoded.is_ok()) {
      EXPECT_EQ(*decoded, plan) << "bit " << bit;
      continue;
    }
    EXPECT_TRUE(decoded.is(ErrorKind::kCorruption) || decoded.is(ErrorKind::kInvalid))
        << decoded.status().to_string();
    ++refused;
  }
  EXPECT_GT(refused, 8 * bytes.size() * 3 / 4) << "most bits carry something";
}

TEST(PlanCodec, RefusesEveryChangedField) {
  for (const auto& [field, changed] : with_each_field_changed(small_plan())) {
    EXPECT_NE(corruption_in(encode_plan(changed)), "") << field;
  }
}

TEST(PlanCodec, AForgedPlanDecodesOnlyIfItCanBeWalked) {
  for (const auto& [field, changed] : with_each_field_changed(small_plan())) {
    const Result<StepPlan> decoded = decode_plan(encode_with_digest(changed));
    EXPECT_EQ(decoded.is_ok(), check_plan_structure(changed).is_ok()) << field;
    if (!decoded.is_ok()) continue;
    EXPECT_NE(decoded->digest, small_plan().digest) << field;
  }
}

TEST(PlanCodec, RefusesUnknownEnums) {
  StepPlan plan = small_plan();
  plan.events[3].phase = static_cast<Phase>(2);
  EXPECT_NE(corruption_in(encode_with_digest(plan)).find("unknown phase 2"), std::string::npos);
  plan = small_plan();
  plan.bound_term = static_cast<BoundTerm>(3);
  EXPECT_NE(corruption_in(encode_with_digest(plan)).find("bound's term 3 is unknown"),
            std::string::npos);
}

TEST(PlanCodec, RefusesUnalignedStructs) {
  // The tasks' vector moved on by a word: its length is then the low word of the first cost.
  StepPlan plan = small_plan();
  plan.tasks[0].cost_ns = 1;
  Bytes bytes = encode_plan(plan);
  const auto* data = reinterpret_cast<const std::uint8_t*>(bytes.data());
  const std::uint8_t* field =
      flatbuffers::GetRoot<flatbuffers::Table>(data)->GetAddressOf(fb::Plan::VT_TASKS);
  std::byte* offset = bytes.data() + (field - data);
  store_le(load_le<std::uint32_t>(offset) + 4, offset);
  EXPECT_EQ(corruption_in(bytes), "plan: a vector of 1 structs is not aligned");
}

TEST(PlanCodec, NamesWhatIsWrong) {
  StepPlan plan = small_plan();
  plan.digest ^= 1;
  EXPECT_NE(corruption_in(encode_plan(plan)).find("digest"), std::string::npos);
  EXPECT_NE(corruption_in(as_bytes("not a plan")).find("10 bytes are not a whole FlatBuffer"),
            std::string::npos);
  Bytes other = encode_plan(small_plan());
  other[4] = std::byte{'X'};  // The file identifier.
  EXPECT_NE(corruption_in(other).find("not a whole FlatBuffer of a plan"), std::string::npos);
}

/// An empty plan of another version, with an axis that does not exist, or with levels that share a
/// name.
Bytes foreign_plan(std::uint16_t version, std::uint8_t axis, std::size_t level_count = 0,
                   std::size_t name_bytes = 4) {
  flatbuffers::FlatBufferBuilder builder;
  const std::vector<fb::AxisExtent> axes = {{axis, 1}};
  const auto name = builder.CreateString(std::string(name_bytes, 'x'));
  const std::vector levels(level_count, fb::CreateLevel(builder, name, 1, 1, 1));
  const std::vector<fb::Sample> samples;
  const std::vector<fb::Piece> pieces;
  const std::vector<fb::MicroBatch> micro_batches;
  const std::vector<fb::IndexRange> ranks;
  const std::vector<fb::Task> tasks;
  const std::vector<std::uint32_t> members;
  const std::vector<fb::Event> events;
  fb::FinishPlanBuffer(
      builder, fb::CreatePlanDirect(builder, version, &axes, &levels, "none", &samples, &pieces,
                                    &micro_batches, &ranks, &tasks, &members, &events));
  const ByteSpan bytes = std::as_bytes(std::span(builder.GetBufferPointer(), builder.GetSize()));
  return {bytes.begin(), bytes.end()};
}

TEST(PlanCodec, RefusesOtherVersionsAndAxes) {
  const auto newer = decode_plan(foreign_plan(2, 1));
  EXPECT_TRUE(newer.is(ErrorKind::kInvalid)) << newer.status().to_string();
  EXPECT_NE(newer.status().message().find("format version 2 is unknown"), std::string::npos);
  EXPECT_NE(corruption_in(foreign_plan(1, 4)).find("axis number 4 is unknown"), std::string::npos);
  EXPECT_NE(corruption_in(foreign_plan(1, 1)).find("0 ranks; its topology \"dp=1\""),
            std::string::npos);
}

TEST(PlanCodec, RefusesLevelsThatWouldTakeFarMoreMemoryThanTheirBytes) {
  EXPECT_NE(corruption_in(foreign_plan(1, 1, 65, 2'000)).find("65 levels"), std::string::npos);
  EXPECT_NE(corruption_in(foreign_plan(1, 1, 2, 256)).find("a level has 256 bytes"),
            std::string::npos);
}

}  // namespace
}  // namespace batchloom::model
