// SPDX-License-Identifier: Apache-2.0
// What a training job keeps outside the store. It outlives the job's processes, as model
// checkpoints on a disk of its own do.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "batchloom/simulator/consumer_judge.h"
#include "batchloom/simulator/store_scenario.h"
#include "batchloom/store/pins.h"

namespace batchloom::simulator {

/// One group of consumers, a process for each rank. One thread at a time.
class Trainer {
 public:
  Trainer(std::string group, const TrainerShape& shape)
      : group_(std::move(group)), shape_(shape), saved_(shape.consumers) {}

  const std::string& group() const { return group_; }
  const TrainerShape& shape() const { return shape_; }

  /// The job begins at the step of this pin.
  void begin(const store::Pin& pin);
  bool has_begun() const { return begun_; }

  /// A rank has saved what it has trained on so far.
  void save(std::size_t rank, const Tally& tally) { saved_[rank][tally.next] = tally; }
  const std::map<store::Step, Tally>& saved(std::size_t rank) const { return saved_[rank]; }

  /// A checkpoint was pinned. It can be used once all ranks have saved their parts.
  void add_checkpoint(const store::Pin& pin) { checkpoints_.push_back(pin); }
  /// Those that can be used, oldest first.
  std::vector<store::Pin> usable_checkpoints() const;
  /// Forgets the oldest checkpoint, if enough newer ones can be used; its pin may go then.
  std::optional<store::Pin> drop_oldest();
  bool has_checkpoint(const std::string& id) const;
  std::string next_id() { return "c" + std::to_string(ids_++); }

  /// All consumers that are opened from now on take at least this head.
  void raise_min_slot(store::Slot slot) { min_slot_ = std::max(min_slot_, slot); }
  store::Slot min_slot() const { return min_slot_; }

  void finish(std::size_t rank) { finished_.insert(rank); }
  bool is_finished(std::size_t rank) const { return finished_.contains(rank); }
  bool is_finished() const { return finished_.size() == shape_.consumers; }

 private:
  bool is_usable(const store::Pin& pin) const;

  const std::string group_;
  const TrainerShape shape_;
  bool begun_ = false;
  std::vector<std::map<store::Step, Tally>> saved_;  // By rank.
  std::vector<store::Pin> checkpoints_;              // Oldest first.
  std::uint64_t ids_ = 0;
  store::Slot min_slot_;
  std::set<std::size_t> finished_;
};

}  // namespace batchloom::simulator
