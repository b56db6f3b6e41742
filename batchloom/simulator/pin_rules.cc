// SPDX-License-Identifier: Apache-2.0
#include "batchloom/simulator/pin_rules.h"

#include <fmt/format.h>

#include <algorithm>

#include "batchloom/store/keys.h"
#include "batchloom/store/pin_codec.h"

namespace batchloom::simulator {

using store::LiveCursor;
using store::Pin;
using store::PinName;
using store::Step;
using store::StreamUuid;

void PinRules::on_put(const StreamUuid& stream, std::string_view key, const Bytes& bytes) {
  if (const auto group = store::parse_live_cursor_key(key)) {
    on_cursor(stream, *group, bytes);
  } else if (const auto name = store::parse_pin_key(key)) {
    on_pin(stream, *name, bytes);
  }
}

void PinRules::on_pin(const StreamUuid& stream, const PinName& name, const Bytes& bytes) {
  const auto pin = store::decode_pin(stream, name, bytes);
  if (!pin.is_ok()) return violations_.add("I12", pin.status().to_string());
  const auto [found, is_new] = pins_.try_emplace(name, PinFacts{.step = pin->step});
  if (is_new) return;
  PinFacts& facts = found->second;
  if (facts.exists || facts.step != pin->step) {
    violations_.add("I12", fmt::format("{} was overwritten", store::pin_key(name)));
  }
  facts = {.step = pin->step};  // A late put brings it back; nobody was told of it.
}

void PinRules::on_cursor(const StreamUuid& stream, const std::string& group, const Bytes& bytes) {
  const auto stored = store::decode_live_cursor(stream, group, bytes);
  if (!stored.is_ok()) return violations_.add("I12", stored.status().to_string());
  const LiveCursor& now = stored->cursor;
  check_reached(now);
  const auto [found, is_new] =
      cursors_.try_emplace(group, CursorFacts{.cursor = now, .promise = {}});
  CursorFacts& facts = found->second;
  check_keep_from(is_new ? nullptr : &facts.cursor, now);
  if (is_new) return;
  if (now.counter <= facts.cursor.counter) {
    violations_.add("I12", fmt::format("group {}: its cursor's counter went from {} to {}", group,
                                       facts.cursor.counter, now.counter));
  }
  if (now.closed || now.keep_from < facts.cursor.keep_from || facts.cursor.closed) {
    facts.promise.reset();
  } else if (facts.promise) {
    facts.promise = now.keep_from;
  }
  if (!now.closed && !facts.cursor.closed && now.cursor != facts.cursor.cursor) ++reports_;
  facts.cursor = now;
}

void PinRules::check_reached(const LiveCursor& now) {
  const Step reached = groups_[now.group].reached;
  if (now.cursor <= reached) return;
  violations_.add("I12", fmt::format("group {}: its cursor says step {}, but it was handed only "
                                     "those before {}",
                                     now.group, now.cursor.value, reached.value));
}

void PinRules::check_keep_from(const LiveCursor* before, const LiveCursor& now) {
  const bool was_open = before != nullptr && !before->closed;
  // Whoever finds its group's cursor closed opens it where it is.
  if (now.keep_from == now.cursor &&
      (groups_[now.group].opened_at.contains(now.cursor) || (before != nullptr && before->closed)))
    return;
  if (before != nullptr && now.keep_from == before->keep_from && (was_open || now.closed)) return;
  const bool rises = was_open && now.keep_from > before->keep_from;
  if (rises && now.keep_from <= now.cursor && was_pinned(now.group, now.keep_from)) return;
  violations_.add(
      "I12", fmt::format(
                 "group {}: its cursor, at step {}, keeps steps from {} on, which is neither where "
                 "it was opened nor a pin of the group that it has reached",
                 now.group, now.cursor.value, now.keep_from.value));
}

bool PinRules::was_pinned(const std::string& group, Step step) const {
  return std::ranges::any_of(
      pins_, [&](const auto& pin) { return pin.first.group == group && pin.second.step == step; });
}

void PinRules::cursor_opening(const std::string& group, Step step) {
  groups_[group].opened_at.insert(step);
  group_reached(group, step);
}

void PinRules::group_reached(const std::string& group, Step step) {
  Step& reached = groups_[group].reached;
  reached = std::max(reached, step);
}

void PinRules::on_remove(std::string_view key) {
  if (const auto group = store::parse_live_cursor_key(key)) {
    return violations_.add("I12", fmt::format("the live cursor of group {} was deleted", *group));
  }
  const auto name = store::parse_pin_key(key);
  if (!name) return;
  const auto found = pins_.find(*name);
  if (found == pins_.end()) return;
  found->second.exists = false;
  found->second.told = false;
}

void PinRules::pin_told(const Pin& pin) {
  const auto found = pins_.find(pin.name);
  if (found == pins_.end() || found->second.step != pin.step) {
    return violations_.add(
        "I12", fmt::format("{} was acknowledged, but never put so", store::pin_key(pin.name)));
  }
  found->second.told = found->second.exists;
}

void PinRules::cursor_told(const std::string& group, Step step) {
  const auto found = cursors_.find(group);
  if (found == cursors_.end() || found->second.cursor.closed ||
      found->second.cursor.keep_from > step) {
    return violations_.add(
        "I12", fmt::format("group {}: told that its cursor keeps step {}, which it does not", group,
                           step.value));
  }
  found->second.promise = found->second.cursor.keep_from;
}

void PinRules::check(Step first_step) {
  for (const auto& [name, facts] : pins_) {
    if (!facts.told || facts.step >= first_step) continue;
    violations_.add("I12", fmt::format("{} keeps step {}, but the stream begins at {}",
                                       store::pin_key(name), facts.step.value, first_step.value));
  }
  for (const auto& [group, facts] : cursors_) {
    if (!facts.promise || *facts.promise >= first_step) continue;
    violations_.add("I12", fmt::format("the live cursor of group {} keeps step {}, but the stream "
                                       "begins at {}",
                                       group, facts.promise->value, first_step.value));
  }
}

std::optional<Step> PinRules::lowest_kept(Step first_step) const {
  std::optional<Step> lowest;
  const auto keep = [&](Step step) {
    if (step >= first_step) lowest = std::min(lowest.value_or(step), step);
  };
  for (const auto& [name, facts] : pins_) {
    if (facts.exists) keep(facts.step);
  }
  for (const auto& [group, facts] : cursors_) {
    if (!facts.cursor.closed) keep(facts.cursor.keep_from);
  }
  return lowest;
}

std::uint64_t PinRules::pins() const {
  return static_cast<std::uint64_t>(
      std::ranges::count_if(pins_, [](const auto& pin) { return pin.second.exists; }));
}

}  // namespace batchloom::simulator
