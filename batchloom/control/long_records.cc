// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/long_records.h"

#include <algorithm>
#include <utility>

namespace batchloom::control {
namespace {

std::uint64_t bytes_held_by(const ReadRecord& read) {
  return sizeof(ReadRecord) + read.record.ids.capacity() * sizeof(sources::TokenId) +
         read.record.loss_mask.capacity();
}

}  // namespace

std::vector<LongRecords::Kept>::iterator LongRecords::find(State& state, const Name& name) {
  return std::ranges::find(state.kept, name, &Kept::name);
}

std::uint64_t LongRecords::bytes() const {
  return state_.read([](const State& state) { return state.bytes; });
}

std::size_t LongRecords::waiting() const {
  return state_.read([](const State& state) { return state.turns.size(); });
}

bool LongRecords::has_room(const State& state, std::uint64_t bytes) const {
  return state.read_bytes == 0 ||
         (state.read_bytes <= bytes_max_ && bytes <= bytes_max_ - state.read_bytes);
}

void LongRecords::look(State& state, Asked& asked, Dropped& dropped) const {
  const auto kept = find(state, asked.name);
  if (kept != state.kept.end()) {
    asked.found = kept->record;
    if (asked.found != nullptr) std::rotate(kept, kept + 1, state.kept.end());
    return;
  }
  const auto own = std::ranges::find(state.turns, asked.turn, &Turn::number);
  if (own == state.turns.end()) {
    asked.turn = state.next_turn++;
    state.turns.push_back({.number = *asked.turn, .name = asked.name});
  }
  if (state.turns.front().number != asked.turn || !has_room(state, asked.bytes)) return;
  // Others that ask for it wait for this reading now.
  std::erase_if(state.turns, [&](const Turn& turn) { return turn.name == asked.name; });
  state.kept.push_back({.name = asked.name, .record = nullptr, .bytes = asked.bytes});
  state.bytes += asked.bytes;
  state.read_bytes += asked.bytes;
  asked.is_mine = true;
  drop_oldest(state, dropped);
}

bool LongRecords::may_go_on(const State& state, const Asked& asked) const {
  const auto kept = std::ranges::find(state.kept, asked.name, &Kept::name);
  if (kept != state.kept.end()) return kept->record != nullptr;
  const auto own = std::ranges::find(state.turns, asked.turn, &Turn::number);
  if (own == state.turns.end()) return true;  // Whoever read it failed: a new turn.
  return own == state.turns.begin() && has_room(state, asked.bytes);
}

Result<ReadRecordPtr> LongRecords::find_or_begin(Asked asked, const CallOptions& call) {
  for (;;) {
    Dropped dropped;
    state_.change([&](State& state) { look(state, asked, dropped); });
    if (asked.found != nullptr || asked.is_mine) return asked.found;
    const Status waited =
        state_.wait_until([&](const State& state) { return may_go_on(state, asked); }, call);
    if (waited.is_ok()) continue;
    state_.change([&](State& state) {
      std::erase_if(state.turns, [&](const Turn& turn) { return turn.number == asked.turn; });
    });
    return waited;
  }
}

Result<ReadRecordPtr> LongRecords::get(const Wanted& wanted, const Read& read,
                                       const CallOptions& call) {
  const std::uint64_t expected = sizeof(ReadRecord) + wanted.ids * sizeof(sources::TokenId);
  BL_ASSIGN_OR_RETURN(const ReadRecordPtr found,
                      find_or_begin({.name = wanted.name, .bytes = expected}, call));
  if (found != nullptr) return found;
  Result<ReadRecord> done = read();
  if (!done.is_ok()) {
    state_.change([&](State& state) {
      const auto own = find(state, wanted.name);
      end_reading(state, own);
      state.kept.erase(own);
    });
    return done.status();
  }
  const auto record = std::make_shared<const ReadRecord>(*std::move(done));
  keep(wanted.name, record);
  return record;
}

void LongRecords::end_reading(State& state, std::vector<Kept>::iterator own) {
  state.bytes -= own->bytes;
  state.read_bytes -= own->bytes;
}

void LongRecords::keep(const Name& name, const ReadRecordPtr& record) {
  Dropped dropped;
  state_.change([&](State& state) {
    const auto own = find(state, name);
    end_reading(state, own);
    own->record = record;
    own->bytes = bytes_held_by(*record);
    state.bytes += own->bytes;
    std::rotate(own, own + 1, state.kept.end());
    drop_oldest(state, dropped);
  });
}

void LongRecords::drop_oldest(State& state, Dropped& dropped) const {
  for (std::size_t i = 0; i + 1 < state.kept.size() && state.bytes > bytes_max_;) {
    Kept& oldest = state.kept[i];
    if (oldest.record == nullptr) {
      ++i;
      continue;
    }
    state.bytes -= oldest.bytes;
    dropped.push_back(std::move(oldest.record));
    state.kept.erase(state.kept.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

}  // namespace batchloom::control
