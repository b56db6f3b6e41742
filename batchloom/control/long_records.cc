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

bool LongRecords::has_room(const State& state, std::uint64_t bytes) const {
  return state.read_bytes == 0 ||
         (state.read_bytes <= bytes_max_ && bytes <= bytes_max_ - state.read_bytes);
}

Result<ReadRecordPtr> LongRecords::find_or_begin(const Name& name, std::uint64_t bytes,
                                                 const CallOptions& call) {
  for (;;) {
    ReadRecordPtr found;
    bool is_mine = false;
    Dropped dropped;
    state_.change([&](State& state) {
      const auto kept = find(state, name);
      if (kept != state.kept.end()) {
        found = kept->record;
        if (found != nullptr) std::rotate(kept, kept + 1, state.kept.end());
      } else if (has_room(state, bytes)) {
        state.kept.push_back({.name = name, .record = nullptr, .bytes = bytes});
        state.bytes += bytes;
        state.read_bytes += bytes;
        is_mine = true;
        drop_oldest(state, dropped);
      }
    });
    if (found != nullptr || is_mine) return found;
    const auto may_go_on = [&](const State& state) {
      const auto kept = std::ranges::find(state.kept, name, &Kept::name);
      return kept == state.kept.end() ? has_room(state, bytes) : kept->record != nullptr;
    };
    BL_RETURN_IF_ERROR(state_.wait_until(may_go_on, call));
  }
}

Result<ReadRecordPtr> LongRecords::get(const Wanted& wanted, const Read& read,
                                       const CallOptions& call) {
  const std::uint64_t expected = sizeof(ReadRecord) + wanted.ids * sizeof(sources::TokenId);
  BL_ASSIGN_OR_RETURN(const ReadRecordPtr found, find_or_begin(wanted.name, expected, call));
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
