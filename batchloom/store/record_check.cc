// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/record_check.h"

#include <fmt/format.h>

#include <utility>

namespace batchloom::store {

bool RecordCheck::RecordSet::insert(model::RecordIndex record) {
  constexpr std::uint64_t kWordBits = 64;
  const std::uint64_t word = record.value / kWordBits;
  const std::uint64_t bit = std::uint64_t{1} << record.value % kWordBits;
  std::uint64_t& bits = pages_[word / kPageWords][word % kPageWords];
  const bool added = (bits & bit) == 0;
  bits |= bit;
  return added;
}

std::optional<std::string> RecordCheck::add(const Entry& entry, const BatchIndex& index) {
  Producer& producer = producer_of(entry);
  std::optional<std::string> wrong;
  for (const IndexedStep& step : index.steps) {
    for (const model::PlanSample& sample : step.plan.samples) {
      ++samples_;
      tokens_ += sample.tokens;
      const auto& origin = index.origin.sources[sample.id.source.value];
      const auto complaint = draw(source_of(producer, origin), sample);
      if (complaint && !wrong) {
        wrong = fmt::format("sample {} {}", model::to_string(sample.id), *complaint);
      }
    }
  }
  return wrong;
}

void RecordCheck::skip() {
  skipped_ = true;
  for (auto& [name, producer] : producers_) {
    producer.may_go_on = true;
    for (auto& [key, source] : producer.sources) source.may_go_on = true;
  }
}

/// A producer that begins at batch 0 in a new term, once its row was dropped, draws anew.
RecordCheck::Producer& RecordCheck::producer_of(const Entry& entry) {
  const auto [at, added] = producers_.try_emplace(entry.producer);
  Producer& producer = at->second;
  const bool anew = entry.term > producer.term && entry.seq == Seq(0) && producer.next_seq > Seq(0);
  if (added || anew) {
    producer = {};
    producer.may_go_on = entry.seq > Seq(0) && (!from_start_ || skipped_);
  }
  producer.term = entry.term;
  producer.next_seq = entry.seq + 1;
  return producer;
}

RecordCheck::Source& RecordCheck::source_of(Producer& producer, const BatchOrigin::Source& source) {
  const auto [at, added] = producer.sources.try_emplace({source.name, source.digest});
  if (added) at->second.may_go_on = producer.may_go_on;
  return at->second;
}

/// What is wrong with `sample` as the source's next one.
std::optional<std::string> RecordCheck::draw(Source& source, const model::PlanSample& sample) {
  const model::SampleId& id = sample.id;
  const std::optional<OpenRecord> open = source.open;
  const bool may_go_on = std::exchange(source.may_go_on, false);
  source.open = {.epoch = id.epoch,
                 .index = id.index,
                 .next_part = id.part + 1,
                 .next_position = sample.first_position + sample.tokens};
  const bool goes_on =
      open && open->epoch == id.epoch && open->index == id.index && open->next_part == id.part;
  if (goes_on) {
    if (sample.first_position == open->next_position) return std::nullopt;
    return fmt::format("begins at position {}, but the part before it ends at {}",
                       sample.first_position, open->next_position);
  }
  const bool is_new = source.drawn[id.epoch].insert(id.index);
  if (id.part == model::PartIndex(0)) {
    return is_new ? std::nullopt : std::optional<std::string>("was drawn before");
  }
  if (may_go_on) return std::nullopt;
  return is_new ? "is no first part, and none of its record was drawn before"
                : "does not follow the part before it";
}

}  // namespace batchloom::store
