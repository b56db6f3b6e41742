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
  std::optional<std::string> wrong;
  Step at = entry.first_step;
  for (const IndexedStep& step : index.steps) {
    const bool anew = reaches_change(at);
    if (anew) producers_.clear();
    Producer& producer = producer_of(entry);
    if (anew && at > entry.first_step) producer.may_go_on = true;
    begun_ = true;
    ++at;
    for (const model::PlanSample& sample : step.plan.samples) {
      ++samples_;
      tokens_ += sample.tokens;
      const auto& origin = index.origin.sources[sample.id.source.value];
      const auto complaint = draw(source_of(producer, origin), sample);
      if (complaint && !wrong) {
        wrong = fmt::format("sample {} {}", model::to_string(sample.id), *complaint);
      }
    }
    for (auto& [key, source] : producer.sources) source.end_step();
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

/// Whether keys change between the steps that were taken and `step`.
bool RecordCheck::reaches_change(Step step) {
  const std::size_t before = next_change_;
  while (next_change_ < changes_.size() && changes_[next_change_] <= step) ++next_change_;
  if (next_change_ == before || !begun_) return false;
  skipped_ = true;
  return true;
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

void RecordCheck::Source::end_step() {
  if (now.empty()) return;
  before = std::exchange(now, {});
  went_on = false;
  may_go_on = false;
}

/// What is wrong with `sample` as one of the source's in this step.
std::optional<std::string> RecordCheck::draw(Source& source, const model::PlanSample& sample) {
  const model::SampleId& id = sample.id;
  std::optional<std::string> wrong;
  if (id.part != model::PartIndex(0)) {
    wrong = go_on(source, sample);
  } else if (!source.drawn[id.epoch].insert(id.index)) {
    wrong = "was drawn before";
  }
  source.now[{id.epoch, id.index}] = {.next_part = id.part + 1,
                                      .next_position = sample.first_position + sample.tokens};
  return wrong;
}

/// The same of a part that is not a record's first.
std::optional<std::string> RecordCheck::go_on(Source& source, const model::PlanSample& sample) {
  const model::SampleId& id = sample.id;
  const auto is_next = [&](const OpenRecords& records, OpenRecords::const_iterator found) {
    return found != records.end() && found->second.next_part == id.part;
  };
  auto found = source.now.find({id.epoch, id.index});
  bool follows = is_next(source.now, found);
  if (!follows && found == source.now.end()) {
    found = source.before.find({id.epoch, id.index});
    follows = is_next(source.before, found) && !std::exchange(source.went_on, true);
  }
  if (follows) {
    if (sample.first_position == found->second.next_position) return std::nullopt;
    return fmt::format("begins at position {}, but the part before it ends at {}",
                       sample.first_position, found->second.next_position);
  }
  const bool is_new = source.drawn[id.epoch].insert(id.index);
  if (std::exchange(source.may_go_on, false)) return std::nullopt;
  return is_new ? "is no first part, and none of its record was drawn before"
                : "does not follow the part before it";
}

}  // namespace batchloom::store
