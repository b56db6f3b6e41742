// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/batch_index.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <functional>
#include <string>

#include "batchloom/base/hash.h"
#include "batchloom/model/plan_codec.h"
#include "batchloom/model/plan_digest.h"
#include "batchloom/model/plan_testing.h"
#include "batchloom/store/batch_index_codec.h"
#include "batchloom/store/batch_object_generated.h"
#include "batchloom/store/batch_testing.h"
#include "batchloom/store/run_codec.h"
#include "batchloom/store/store_testing.h"

namespace batchloom::store {
namespace {

Slice index_of(const BatchContext& context, ByteSpan object) {
  return decode_batch_footer(context, object.last(kBatchFooterBytes)).value();
}

RC_GTEST_PROP(BatchIndexProperty, SaysWhatWasPutInAndWhereItLies, ()) {
  const TestBatch batch = random_batch(*any_batch_shape());
  const BuiltBatch built = batch.build();
  const Bytes object = object_of(built);
  const BatchContext context = context_of(batch.options.identity, built);
  const Slice place = index_of(context, object);
  const auto index = decode_batch_index(
      context, place.offset_bytes, ByteSpan(object).subspan(place.offset_bytes, place.size_bytes));
  if (!index.is_ok()) RC_FAIL(index.status().to_string());
  const Status same = compare_index(*index, batch);
  if (!same.is_ok()) RC_FAIL(same.to_string());

  std::uint64_t payload_bytes = 0;
  RC_ASSERT(index->pieces.size() == batch.steps.size());
  for (std::size_t position = 0; position < batch.steps.size(); ++position) {
    RC_ASSERT(index->pieces[position].size() == batch.steps[position].plan.pieces.size());
    for (const IndexedPiece& piece : index->pieces[position]) {
      std::uint32_t crc = 0;
      piece.slices.for_each([&](const Slice& slice) {
        payload_bytes += slice.size_bytes;
        crc = crc32c(ByteSpan(object).subspan(slice.offset_bytes, slice.size_bytes), crc);
      });
      RC_ASSERT(crc == piece.crc);
    }
  }
  RC_ASSERT(payload_bytes == built.payload_bytes);
}

/// Two steps of small_plan() for 4 ranks as a writer that is not ours may describe them.
class BatchIndexTest : public testing::Test {
 protected:
  BatchIndexTest() {
    for (const std::uint64_t seed : {1U, 2U}) {
      steps_.push_back(make_step(model::small_plan(), TokenWidth::k16, seed));
    }
    rows_.identity = test_identity();
    rows_.token_width = TokenWidth::k16;
    rows_.origin = &origin_;
    for (const TestStep& step : steps_) {
      IndexStepRows& rows = rows_.steps.emplace_back();
      rows.plan = &step.plan;
      rows.origins = step.origins;
      rows.micro_batches.resize(step.plan.micro_batches.size());
      rows.pieces.resize(step.plan.pieces.size(), {.all_labels = true, .crc = 5});
    }
    place_micro_batches();
  }

  /// Rank by rank, step by step, each run with a header of 128 bytes.
  void place_micro_batches() {
    std::uint64_t at = first_run_offset(4, 2);
    for (std::uint32_t rank = 0; rank < 4; ++rank) {
      for (IndexStepRows& step : rows_.steps) {
        at += 128;
        const model::IndexRange own = step.plan->ranks[rank];
        for (std::uint32_t i = own.begin; i < own.end; ++i) {
          step.micro_batches[i] = at;
          std::vector<PieceCounts> counts;
          for (const auto& piece : step.plan->pieces_of(step.plan->micro_batches[i])) {
            counts.push_back({.tokens = piece.tokens()});
          }
          at = lay_out(at, TokenWidth::k16, counts, {}).end;
        }
      }
    }
    runs_end_ = at;
  }

  BatchContext context(std::uint64_t index_bytes) const {
    return {.key = "d/key",
            .identity = test_identity(),
            .steps = 2,
            .ranks = 4,
            .size_bytes = runs_end_ + index_bytes + kBatchFooterBytes};
  }
  Result<BatchIndex> decode(ByteSpan bytes) const {
    return decode_batch_index(context(bytes.size()), runs_end_, bytes);
  }
  Result<BatchIndex> decode() const { return decode(encode_batch_index(rows_)); }
  void expect_corruption(std::string_view reason) const { expect_corruption(decode(), reason); }
  void expect_corruption(const Result<BatchIndex>& index, std::string_view reason) const {
    ASSERT_TRUE(index.is(ErrorKind::kCorruption)) << reason;
    const std::string_view message = index.status().message();
    EXPECT_NE(message.find(reason), std::string_view::npos) << message;
    constexpr std::string_view kPlace = "d/key: at byte ";
    ASSERT_TRUE(message.starts_with(kPlace)) << message;
    EXPECT_GE(std::stoull(std::string(message.substr(kPlace.size()))), runs_end_)
        << "of the object: " << message;
    EXPECT_NE(message.find(": index: "), std::string_view::npos) << message;
  }
  Bytes with_shared_rows(std::size_t step_count, std::size_t source_count) const;
  /// The index with step 0's plan after `change`, whatever that makes of it.
  void change_plan(const std::function<void(model::StepPlan&)>& change) {
    change(steps_[0].plan);
    steps_[0].plan.digest = model::plan_digest(steps_[0].plan);
  }

  BatchOrigin origin_{.sources = {{"web", 1}, {"code", 2}},
                      .planner = "planner 1",
                      .planner_digest = 3,
                      .capacity_tokens = 4,
                      .cost_model = "h200",
                      .cost_table = to_bytes("table")};
  std::vector<TestStep> steps_;
  BatchIndexRows rows_;
  std::uint64_t runs_end_ = 0;
};

TEST_F(BatchIndexTest, IsAnIndex) {
  const auto index = decode();
  ASSERT_TRUE(index.is_ok()) << index.status().to_string();
  EXPECT_EQ(index->origin, origin_);
  EXPECT_EQ(index->steps[1].plan, model::small_plan());
}

TEST_F(BatchIndexTest, TheBoundHolds) {
  EXPECT_LE(encode_batch_index(rows_).size(), encoded_bound(rows_));
  const TestBatch batch = small_batch();
  for (std::size_t i = 0; i < 50; ++i) {
    origin_.sources.push_back({std::string(i, 'x'), 1});
    origin_.cost_table.resize(i * i);
    for (IndexStepRows& step : rows_.steps) {
      step.tensors.push_back({.token = 0, .info = {std::string(i, 'x'), TensorType::kU8, {1, 2}}});
      step.pieces.emplace_back();
      step.micro_batches.push_back(0);
    }
    EXPECT_LE(encode_batch_index(rows_).size(), encoded_bound(rows_));
  }
}

TEST_F(BatchIndexTest, AnyByteChangedIsFound) {
  Bytes bytes = encode_batch_index(rows_);
  for (std::size_t place = 0; place < bytes.size(); ++place) {
    for (const std::byte change : {std::byte{1}, std::byte{0x80}}) {
      bytes[place] ^= change;
      const auto index = decode(bytes);
      EXPECT_TRUE(index.is(place / 2 == 3 ? ErrorKind::kInvalid : ErrorKind::kCorruption));
      bytes[place] ^= change;
    }
  }
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    expect_corruption(decode(ByteSpan(bytes).first(size)), "");
  }
}

TEST_F(BatchIndexTest, IsOfTheObjectMeant) {
  rows_.identity.seq = Seq(8);
  expect_corruption("is of batch 8 of p in term 3, expected batch 7 of p in term 3");
  rows_.identity = test_identity();
  rows_.identity.producer.assign(500, 'p');
  expect_corruption("expected batch 7");
  rows_.identity = test_identity();
  rows_.identity.stream = test_uuid(2);
  expect_corruption("belongs to stream " + test_uuid(2).to_string());
  rows_.identity = test_identity();
  rows_.steps.pop_back();
  expect_corruption("has 1 steps, its entry says 2");
}

TEST_F(BatchIndexTest, NamesAreShort) {
  origin_.planner.assign(256, 'x');
  expect_corruption("a name of 256 bytes, at most 255 can be");
  EXPECT_TRUE(check_origin(origin_).is(ErrorKind::kInvalid));
  origin_.planner.assign(255, 'x');
  EXPECT_TRUE(decode().is_ok());
  EXPECT_TRUE(check_origin(origin_).is_ok());
  origin_.sources[0].name.assign(256, 'x');
  expect_corruption("a name of 256 bytes");
  EXPECT_TRUE(check_origin(origin_).is(ErrorKind::kInvalid));
}

TEST_F(BatchIndexTest, PlansAreOnesThatMayBeExecuted) {
  change_plan([](model::StepPlan& plan) { plan.global_valid_labels += 1; });
  expect_corruption("the samples have");
}

TEST_F(BatchIndexTest, PlansCarryTheirDigest) {
  steps_[0].plan.digest += 1;
  expect_corruption("plan: the fields' digest is");
}

TEST_F(BatchIndexTest, PlansAreForTheEntrysRanks) {
  const model::StepPlan other = model::random_plan({.seed = 1, .ranks = 3, .samples = 0});
  rows_.steps[1] = {
      .plan = &other, .origins = {}, .micro_batches = {}, .pieces = {}, .tensors = {}};
  expect_corruption("a plan for 3 ranks, the entry says 4");
}

TEST_F(BatchIndexTest, EverythingPlannedHasARow) {
  const BatchIndexRows whole = rows_;
  rows_.steps[0].pieces.pop_back();
  expect_corruption("rows for 4 samples, 8 micro-batches and 8 pieces; the plan has 4, 8 and 9");
  rows_ = whole;
  rows_.steps[0].micro_batches.push_back(0);
  expect_corruption("rows for 4 samples, 9 micro-batches");
  rows_ = whole;
  rows_.steps[0].origins = rows_.steps[0].origins.first(3);
  expect_corruption("rows for 3 samples");
}

TEST_F(BatchIndexTest, TensorsAreOwnedByPieces) {
  rows_.steps[1].tensors.push_back({.token = 0, .info = {"t", TensorType::kU8, {}}});
  expect_corruption("tensors that belong to no piece");
  rows_.steps[1].tensors.clear();
  rows_.steps[1].pieces[0].tensors = 1;
  expect_corruption("a piece with 1 tensors; 0 are left");
  rows_.steps[1].tensors.push_back({.token = 99, .info = {"t", TensorType::kU8, {}}});
  expect_corruption("a tensor of token 99");
}

/// What no origins of ours can be encoded to.
TEST_F(BatchIndexTest, PatchesAreOwnedBySamples) {
  steps_[0].origins[3].image_patches = {4, 5};
  const Bytes framed = encode_batch_index(rows_);
  const auto with_patches = [&](std::uint32_t patches) {
    Bytes payload(framed.begin() + kFrameBytes, framed.end());
    const auto* origin =
        flatbuffers::GetRoot<fb::Index>(payload.data())->steps()->Get(0)->origins()->Get(3);
    EXPECT_EQ(origin->patches(), 2U);
    constexpr std::ptrdiff_t kPatchesAt = 20;
    const auto place = reinterpret_cast<const std::byte*>(origin) - payload.data() + kPatchesAt;
    store_le(patches, &payload[static_cast<std::size_t>(place)]);
    return decode(encode_frame(ObjectKind::kBatchIndex, test_uuid(1), payload));
  };
  EXPECT_TRUE(with_patches(2).is_ok());
  expect_corruption(with_patches(1), "patches that belong to no sample");
  expect_corruption(with_patches(3), "with 3 patches; 2 are left");
}

TEST_F(BatchIndexTest, LabelIntervalsFitTheirPiece) {
  rows_.steps[1].pieces[0].label_intervals = 1;
  expect_corruption("with 1 label intervals; at most 0 are possible");
}

TEST_F(BatchIndexTest, MicroBatchesLieOneBehindTheOther) {
  const auto moved = [this](std::size_t step, std::size_t micro_batch, std::uint64_t by) {
    BatchIndexRows rows = rows_;
    rows.steps[step].micro_batches[micro_batch] += by;
    return decode(encode_batch_index(rows));
  };
  // Rank 0 has two: the first behind its header, the second behind the first.
  EXPECT_TRUE(moved(0, 0, 0).is_ok());
  expect_corruption(moved(0, 1, 64), "micro-batch 1 of step 0, rank 0, at byte");
  expect_corruption(moved(0, 1, std::uint64_t{0} - 64), "expected at byte");
  expect_corruption(moved(0, 0, std::uint64_t{0} - 128), "micro-batch 0 of step 0, rank 0");
  expect_corruption(moved(0, 0, 1), "micro-batch 0 of step 0");
  expect_corruption(moved(0, 0, 1 << 20), "expected from byte");
  expect_corruption(moved(1, 6, std::uint64_t{0} - 64), "micro-batch 1 of step 1, rank 3");
}

TEST_F(BatchIndexTest, RunsEndWhereTheIndexBegins) {
  runs_end_ += 64;
  expect_corruption("the runs end at byte");
  runs_end_ -= 128;
  expect_corruption("before byte " + std::to_string(runs_end_));
}

/// Then nothing behind the run tells where it must end.
TEST(BatchIndexOfIdleRanks, RunsEndBeforeTheIndex) {
  model::StepPlan plan = packed_plan({.samples = 1, .tokens = 100});
  plan.topology = model::Topology::create({{model::Axis::kDp, 2}}).value();
  plan.ranks = {{0, 1}, {1, 1}};
  plan.digest = model::plan_digest(plan);
  const TestStep step = make_step(std::move(plan), TokenWidth::k16, 1);
  const BatchOrigin origin{.sources = {{"web", 1}}};
  IndexStepRows rows{.plan = &step.plan,
                     .origins = step.origins,
                     .micro_batches = {256},
                     .pieces = {{.all_labels = true}},
                     .tensors = {}};
  const Bytes bytes = encode_batch_index({.identity = test_identity(),
                                          .token_width = TokenWidth::k16,
                                          .origin = &origin,
                                          .steps = {rows}});
  const auto decode = [&](std::uint64_t runs_end) {
    const BatchContext context{.key = "d/key",
                               .identity = test_identity(),
                               .steps = 1,
                               .ranks = 2,
                               .size_bytes = runs_end + bytes.size() + kBatchFooterBytes};
    return decode_batch_index(context, runs_end, bytes);
  };
  // The columns end at 576, and 64 bytes of header follow at least.
  EXPECT_TRUE(decode(640).is_ok()) << decode(640).status().to_string();
  EXPECT_TRUE(decode(1024).is_ok());
  for (const std::uint64_t runs_end : {512U, 576U}) {
    const auto index = decode(runs_end);
    ASSERT_TRUE(index.is(ErrorKind::kCorruption)) << runs_end;
    EXPECT_NE(index.status().message().find("the runs at " + std::to_string(runs_end)),
              std::string_view::npos)
        << index.status().message();
  }
}

/// What FlatBuffers would allow, a short object that decodes into a long one: an index whose
/// `step_count` steps are one, and whose `source_count` sources are one.
Bytes BatchIndexTest::with_shared_rows(std::size_t step_count, std::size_t source_count) const {
  flatbuffers::FlatBufferBuilder builder;
  const Bytes plan = model::encode_plan(steps_[0].plan);
  const auto stored_plan =
      builder.CreateVector(reinterpret_cast<const std::uint8_t*>(plan.data()), plan.size());
  const auto origins =
      builder.CreateVectorOfStructs(std::vector<fb::IndexOrigin>(steps_[0].plan.samples.size()));
  const auto patches = builder.CreateVector(std::vector<std::uint32_t>());
  const auto begins = builder.CreateVector(rows_.steps[0].micro_batches);
  const auto pieces =
      builder.CreateVectorOfStructs(std::vector<fb::IndexPiece>(steps_[0].plan.pieces.size()));
  const auto tensors = builder.CreateVector(std::vector<flatbuffers::Offset<fb::Tensor>>());
  const auto step =
      fb::CreateIndexStep(builder, stored_plan, origins, patches, begins, pieces, tensors);
  const auto name = builder.CreateString("p");
  const auto source = fb::CreateIndexSource(builder, builder.CreateString(std::string(200, 'x')));
  const auto sources = builder.CreateVector(std::vector(source_count, source));
  const auto steps = builder.CreateVector(std::vector(step_count, step));
  const auto root = fb::CreateIndex(builder, name, 3, 7, 2, 0, sources, name, 0, 0, name, 0, steps);
  return finish_frame(ObjectKind::kBatchIndex, test_uuid(1), builder, root).bytes;
}

TEST_F(BatchIndexTest, StepsDoNotShareTheirRows) {
  expect_corruption(decode(with_shared_rows(2, 3)), "steps share their rows");
}

TEST_F(BatchIndexTest, EverySampleIsOfANamedSource) {
  change_plan([](model::StepPlan& plan) { plan.samples[0].id.source = model::SourceId(2); });
  expect_corruption("is of none of the 2 sources");
}

TEST_F(BatchIndexTest, SourcesDoNotShareTheirNames) {
  expect_corruption(decode(with_shared_rows(1, 100)), "sources share their names");
}

/// Whatever the payload says in a right frame: an index, or an error.
TEST_F(BatchIndexTest, DamagedPayloadInARightFrame) {
  const Bytes framed = encode_batch_index(rows_);
  Bytes payload(framed.begin() + kFrameBytes, framed.end());
  bool later_version = false;  // Of a plan.
  for (std::size_t bit = 0; bit < 8 * payload.size(); ++bit) {
    payload[bit / 8] ^= std::byte{1} << (bit % 8);
    const auto index = decode(encode_frame(ObjectKind::kBatchIndex, test_uuid(1), payload));
    EXPECT_TRUE(index.is_ok() || index.is(ErrorKind::kCorruption) || index.is(ErrorKind::kInvalid));
    if (!index.is_ok()) {
      EXPECT_TRUE(index.status().message().starts_with("d/key: at byte "))
          << index.status().message();
    }
    later_version |= index.is(ErrorKind::kInvalid);
    payload[bit / 8] ^= std::byte{1} << (bit % 8);
  }
  EXPECT_TRUE(later_version);
}

}  // namespace
}  // namespace batchloom::store
