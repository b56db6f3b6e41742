// SPDX-License-Identifier: Apache-2.0
#include "batchloom/model/plan_digest.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstring>
#include <map>
#include <string>

#include "batchloom/base/bytes.h"
#include "batchloom/base/hash.h"
#include "batchloom/model/plan_testing.h"

namespace batchloom::model {
namespace {

/// The walk of docs/formats/plan.md, written down by hand.
class Transcript {
 public:
  Transcript& u8(std::uint8_t value) { return add(value); }
  Transcript& u32(std::uint32_t value) { return add(value); }
  Transcript& u64(std::uint64_t value) { return add(value); }
  Transcript& text(std::string_view value) {
    u64(value.size());
    const ByteSpan view = as_bytes(value);
    bytes_.insert(bytes_.end(), view.begin(), view.end());
    return *this;
  }
  std::uint64_t hash() const { return xxh3_64(bytes_); }

 private:
  template <class T>
  Transcript& add(T value) {
    std::byte buffer[sizeof(T)];
    store_le(value, buffer);
    bytes_.insert(bytes_.end(), std::begin(buffer), std::end(buffer));
    return *this;
  }
  Bytes bytes_;
};

TEST(PlanDigest, IsTheDocumentedWalk) {
  StepPlan plan;
  plan.topology =
      Topology::create({{Axis::kDp, 1}, {Axis::kTp, 2}}, {{"island", 2, 400, 10}}).value();
  plan.strategy = "lpt";
  plan.samples = {{{SourceId(1), Epoch(2), RecordIndex(3), PartIndex(4)}, 5, 6, 7}};
  plan.pieces = {{SampleIndex(8), 9, 10}};
  plan.micro_batches = {{TaskIndex(11), {12, 13}}};
  plan.ranks = {{14, 15}};
  plan.tasks = {{{16, 17}, OffloadRatio(18), 19}};
  for (HdpRank rank; rank.value < 2'000; ++rank) plan.members.push_back(rank);
  plan.events = {{TaskIndex(21), Phase::kBackward}};
  plan.global_valid_labels = 22;
  plan.lower_bound_ns = 23;
  plan.bound_term = BoundTerm::kLongest;
  plan.makespan_ns = 24;
  plan.digest = 25;  // Not part of the walk.

  Transcript walk;
  walk.u32(0);
  walk.u64(2).u8(1).u32(1).u8(3).u32(2);
  walk.u64(1).text("island").u32(2).u64(400).u64(10);
  walk.text("lpt");
  walk.u64(1).u32(1).u32(2).u64(3).u32(4).u32(5).u32(6).u64(7);
  walk.u64(1).u32(8).u32(9).u32(10);
  walk.u64(1).u32(11).u32(12).u32(13);
  walk.u64(1).u32(14).u32(15);
  walk.u64(1).u32(16).u32(17).u32(18).u64(19);
  walk.u64(2'000);  // More than the walk's buffer holds.
  for (std::uint32_t rank = 0; rank < 2'000; ++rank) walk.u32(rank);
  walk.u64(1).u32(21).u8(1);
  walk.u64(22).u64(23).u8(2).u64(24);
  EXPECT_EQ(plan_digest(plan), walk.hash());
}

TEST(PlanDigest, ChangesWithEveryField) {
  const StepPlan plan = small_plan();
  std::map<std::uint64_t, std::string> seen = {{plan_digest(plan), "no change"}};
  for (const auto& [field, changed] : with_each_field_changed(plan)) {
    const auto [place, fresh] = seen.emplace(plan_digest(changed), field);
    EXPECT_TRUE(fresh) << field << " has the digest of " << place->second;
  }
}

TEST(PlanDigest, DoesNotSeeTheStoredDigest) {
  StepPlan plan = small_plan();
  ++plan.digest;
  EXPECT_EQ(plan_digest(plan), small_plan().digest);
}

TEST(PlanDigest, DoesNotSeePaddingOrCapacity) {
  const StepPlan plan = small_plan();
  StepPlan dirty = plan;
  dirty.samples.clear();
  dirty.samples.reserve(100);
  dirty.samples.resize(plan.samples.size());
  std::memset(static_cast<void*>(dirty.samples.data()), 0xa5,
              dirty.samples.size() * sizeof(PlanSample));
  for (std::size_t i = 0; i < plan.samples.size(); ++i) {
    dirty.samples[i].id.source = plan.samples[i].id.source;
    dirty.samples[i].id.epoch = plan.samples[i].id.epoch;
    dirty.samples[i].id.index = plan.samples[i].id.index;
    dirty.samples[i].id.part = plan.samples[i].id.part;
    dirty.samples[i].tokens = plan.samples[i].tokens;
    dirty.samples[i].valid_labels = plan.samples[i].valid_labels;
    dirty.samples[i].first_position = plan.samples[i].first_position;
  }
  ASSERT_NE(std::memcmp(dirty.samples.data(), plan.samples.data(), sizeof(PlanSample)), 0)
      << "the test needs a type with padding";
  EXPECT_EQ(plan_digest(dirty), plan.digest);
}

RC_GTEST_PROP(PlanDigest, IsAFunctionOfTheFields, ()) {
  const StepPlan plan = *any_plan();
  const StepPlan copy = plan;
  RC_ASSERT(plan_digest(copy) == plan.digest);
}

}  // namespace
}  // namespace batchloom::model
