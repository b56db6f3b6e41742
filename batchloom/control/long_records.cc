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

Result<ReadRecordPtr> LongRecords::get(const Name& name, const Read& read,
                                       const CallOptions& call) {
  for (;;) {
    ReadRecordPtr found;
    bool is_mine = false;
    state_.change([&](State& state) {
      const auto kept = find(state, name);
      if (kept == state.kept.end()) {
        state.kept.push_back({.name = name, .record = nullptr});
        is_mine = true;
        return;
      }
      found = kept->record;
      if (found != nullptr) std::rotate(kept, kept + 1, state.kept.end());
    });
    if (found != nullptr) return found;
    if (is_mine) break;
    const auto is_read = [&](const State& state) {
      const auto kept = std::ranges::find(state.kept, name, &Kept::name);
      return kept == state.kept.end() || kept->record != nullptr;
    };
    BL_RETURN_IF_ERROR(state_.wait_until(is_read, call));
  }
  Result<ReadRecord> done = read();
  if (!done.is_ok()) {
    state_.change([&](State& state) { state.kept.erase(find(state, name)); });
    return done.status();
  }
  const auto record = std::make_shared<const ReadRecord>(*std::move(done));
  keep(name, record);
  return record;
}

void LongRecords::keep(const Name& name, const ReadRecordPtr& record) {
  std::vector<ReadRecordPtr> dropped;  // Freed outside of the lock.
  state_.change([&](State& state) {
    const auto own = find(state, name);
    own->record = record;
    own->bytes = bytes_held_by(*record);
    state.bytes += own->bytes;
    std::rotate(own, own + 1, state.kept.end());
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
  });
}

}  // namespace batchloom::control
