// SPDX-License-Identifier: Apache-2.0
#include "batchloom/model/plan_digest.h"

#include <array>
#include <string_view>

#include "batchloom/base/bytes.h"
#include "batchloom/base/hash.h"

namespace batchloom::model {
namespace {

/// The walk's version. Changing the order or the width of a field changes it.
constexpr std::uint32_t kWalkVersion = 0;

/// Collects integers before they are hashed: a call of the hash per integer would cost more than
/// the hash itself, and so would looking for room per integer.
class Walk {
 public:
  /// Integers, strong ones and ranges.
  template <class... Values>
  void add(const Values&... values) {
    static_assert((sizeof(Values) + ...) <= kBufferBytes);
    if (used_ + (sizeof(Values) + ...) > kBufferBytes) flush();
    (put(values), ...);
  }
  void add_count(std::size_t count) { add(std::uint64_t{count}); }
  void add_text(std::string_view text) {
    flush();
    digest_.add_text(text);
  }
  std::uint64_t finish() {
    flush();
    return digest_.value();
  }

 private:
  static constexpr std::size_t kBufferBytes = 4096;

  template <class T>
  void put(T value) {
    store_le(value, buffer_.data() + used_);
    used_ += sizeof(T);
  }
  template <class Tag, class Rep>
  void put(StrongInt<Tag, Rep> id) {
    put(id.value);
  }
  void put(IndexRange range) {
    put(range.begin);
    put(range.end);
  }
  void flush() {
    digest_.add(ByteSpan(buffer_).first(used_));
    used_ = 0;
  }

  Digest digest_;
  std::array<std::byte, kBufferBytes> buffer_;
  std::size_t used_ = 0;
};

void add_topology(Walk& walk, const Topology& topology) {
  walk.add_count(topology.axes().size());
  for (const auto& [axis, extent] : topology.axes()) {
    walk.add(static_cast<std::uint8_t>(axis), extent);
  }
  walk.add_count(topology.levels().size());
  for (const Level& level : topology.levels()) {
    walk.add_text(level.name);
    walk.add(level.ranks_per_group, level.bandwidth_bytes_per_s, level.latency_ns);
  }
}

void add_samples(Walk& walk, const StepPlan& plan) {
  walk.add_count(plan.samples.size());
  for (const PlanSample& sample : plan.samples) {
    walk.add(sample.id.source, sample.id.epoch, sample.id.index, sample.id.part, sample.tokens,
             sample.valid_labels, sample.first_position);
  }
}

void add_layout(Walk& walk, const StepPlan& plan) {
  walk.add_count(plan.pieces.size());
  for (const Piece& piece : plan.pieces) {
    walk.add(piece.sample, piece.lo, piece.hi);
  }
  walk.add_count(plan.micro_batches.size());
  for (const MicroBatch& micro_batch : plan.micro_batches) {
    walk.add(micro_batch.task, micro_batch.pieces);
  }
  walk.add_count(plan.ranks.size());
  for (const IndexRange& micro_batches : plan.ranks) walk.add(micro_batches);
}

void add_schedule(Walk& walk, const StepPlan& plan) {
  walk.add_count(plan.tasks.size());
  for (const Task& task : plan.tasks) {
    walk.add(task.members, task.offload, task.cost_ns);
  }
  walk.add_count(plan.members.size());
  for (const HdpRank rank : plan.members) walk.add(rank);
  walk.add_count(plan.events.size());
  for (const Event& event : plan.events) {
    walk.add(event.task, static_cast<std::uint8_t>(event.phase));
  }
}

}  // namespace

std::uint64_t plan_digest(const StepPlan& plan) {
  Walk walk;
  walk.add(kWalkVersion);
  add_topology(walk, plan.topology);
  walk.add_text(plan.strategy);
  add_samples(walk, plan);
  add_layout(walk, plan);
  add_schedule(walk, plan);
  walk.add(plan.global_valid_labels, plan.lower_bound_ns,
           static_cast<std::uint8_t>(plan.bound_term), plan.makespan_ns);
  return walk.finish();
}

}  // namespace batchloom::model
