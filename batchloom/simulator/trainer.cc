// SPDX-License-Identifier: Apache-2.0
#include "batchloom/simulator/trainer.h"

#include <algorithm>

namespace batchloom::simulator {

using store::Pin;

void Trainer::begin(const Pin& pin) {
  begun_ = true;
  Tally tally;
  tally.base = tally.next = pin.step;
  for (auto& saved : saved_) saved[pin.step] = tally;
  add_checkpoint(pin);
}

bool Trainer::is_usable(const Pin& pin) const {
  return std::ranges::all_of(saved_, [&](const auto& saved) { return saved.contains(pin.step); });
}

std::vector<Pin> Trainer::usable_checkpoints() const {
  std::vector<Pin> usable;
  for (const Pin& pin : checkpoints_) {
    if (is_usable(pin)) usable.push_back(pin);
  }
  return usable;
}

std::optional<Pin> Trainer::drop_oldest() {
  const auto usable = usable_checkpoints().size();
  if (checkpoints_.size() <= shape_.checkpoints_kept || usable <= shape_.checkpoints_kept) {
    return std::nullopt;
  }
  const Pin oldest = checkpoints_.front();
  checkpoints_.erase(checkpoints_.begin());
  return oldest;
}

bool Trainer::has_checkpoint(const std::string& id) const {
  return std::ranges::any_of(checkpoints_, [&](const Pin& pin) { return pin.name.id == id; });
}

}  // namespace batchloom::simulator
