// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <ranges>
#include <utility>

#include "batchloom/store/damage.h"
#include "batchloom/store/floor.h"
#include "batchloom/store/head_transition.h"
#include "batchloom/store/list_keys.h"
#include "batchloom/store/manifest_reader.h"
#include "batchloom/store/pin_codec.h"
#include "batchloom/store/read_object.h"
#include "batchloom/store/sequence_check.h"

namespace batchloom::store {
namespace {

/// What reading an object has come to. Neither a value nor missing: damaged, which is noted.
template <class Value>
struct Reading {
  std::optional<Value> value;
  bool missing = false;
};

/// What a decoder makes of an object.
template <class Decode>
using Decoded = std::remove_cvref_t<decltype(std::declval<Decode&>()(ByteSpan()).value())>;

/// What goes through the entries in step order.
struct HistoryChecks {
  SequenceCheck sequences;
  BatchCheck batches;

  void skip() {
    sequences.skip();
    batches.skip();
  }
};

/// The steps from which on the keys that decide membership are others than before.
std::vector<Step> membership_changes(const Head& head) {
  std::vector<Step> changes;
  const MembershipRow* before = nullptr;
  for (const MembershipRow& row : head.memberships) {
    if (before == nullptr || row.digest != before->digest) changes.push_back(row.from_step);
    before = &row;
  }
  return changes;
}

/// One verification under way.
class Verification {
 public:
  Verification(const Stream& stream, VerifyDepth depth, StreamInventory inventory,
               const CallOptions& call)
      : stream_(stream), depth_(depth), inventory_(std::move(inventory)), call_(call) {}

  Result<VerifyReport> run() {
    BL_RETURN_IF_ERROR(check_floor());
    BL_RETURN_IF_ERROR(check_slots());
    if (newest_) BL_RETURN_IF_ERROR(check_history(newest_->head));
    if (newest_) BL_RETURN_IF_ERROR(check_producers(newest_->head));
    if (newest_) BL_RETURN_IF_ERROR(check_memberships(newest_->head));
    BL_RETURN_IF_ERROR(check_pins());
    BL_RETURN_IF_ERROR(check_still());
    report_.orphans = inventory_.unclaimed();
    report_.foreign = inventory_.foreign();
    return std::move(report_);
  }

 private:
  void problem(std::string text) { report_.problems.push_back(std::move(text)); }
  /// Of an object as a whole, or of two that do not agree.
  void problem(std::string_view key, std::string_view reason) {
    problem(damage_text(key, 0, reason));
  }
  void missing(std::string_view key, std::string_view reason) {
    problem(std::string(missing_object(key, reason).message()));
  }

  template <class Decode>
  Result<Reading<Decoded<Decode>>> read(const WholeObject& object, Decode decode);
  /// The same of an object that must be there. nullopt: it is missing or damaged, which is noted.
  template <class Decode>
  Result<std::optional<Decoded<Decode>>> read(const WholeObject& object, std::string_view reason,
                                              Decode decode);

  Status check_floor();
  Status check_slots();
  Result<Slot> check_unlisted(Slot from, Slot end);
  Result<bool> check_slot(Slot slot);
  Status check_history(const Head& head);
  Status walk_segment(const SegmentRef& ref, Step end, HistoryChecks& checks);
  Status check_entry(const std::string& holder, const Entry& entry, HistoryChecks& checks);
  Result<bool> check_object(const std::string& holder, const Entry& entry);
  Status check_batch(const Entry& entry, BatchCheck& batches);
  Status check_producers(const Head& head);
  Status check_state(const ProducerRow& row);
  Status check_memberships(const Head& head);
  Status check_pins();
  Result<HeadPtr> newest_by_now();
  template <class Names>
  Result<bool> is_still_named(Names names);
  Result<bool> is_still_kept(Step end);
  Status check_still();

  const Stream& stream_;
  const VerifyDepth depth_;
  StreamInventory inventory_;
  const CallOptions& call_;
  VerifyReport report_;
  std::optional<Slot> read_floor_;    // Unless it is damaged.
  std::optional<StoredHead> newest_;  // That could be read.
  ManifestReader reader_{stream_};    // For what happens meanwhile.
  Step trimmed_below_;                // In the newest head that was seen.
};

template <class Decode>
Result<Reading<Decoded<Decode>>> Verification::read(const WholeObject& object, Decode decode) {
  using Value = Decoded<Decode>;
  Status refusal;  // The decoder's: `invalid` for a version that this build does not know.
  Result<std::optional<Value>> value =
      read_object(stream_.objects(), object, call_, [&](const objstore::ObjectData& data) {
        Result<Value> decoded = decode(ByteSpan(data.bytes));
        refusal = decoded.status();
        return decoded;
      });
  if (value.is_ok()) {
    const bool missing = !value->has_value();
    return Reading<Value>{.value = *std::move(value), .missing = missing};
  }
  if (!value.is(ErrorKind::kCorruption) && !refusal.is(ErrorKind::kInvalid)) return value.status();
  problem(std::string(value.status().message()));
  return Reading<Value>();
}

template <class Decode>
Result<std::optional<Decoded<Decode>>> Verification::read(const WholeObject& object,
                                                          std::string_view reason, Decode decode) {
  BL_ASSIGN_OR_RETURN(auto reading, read(object, std::move(decode)));
  if (reading.missing) this->missing(object.key, reason);
  return std::move(reading.value);
}

Status Verification::check_floor() {
  BL_ASSIGN_OR_RETURN(read_floor_,
                      read({kFloorKey, kSmallObjectMaxBytes}, "although init makes it",
                           [&](ByteSpan bytes) { return decode_floor(stream_.uuid(), bytes); }));
  const auto& slots = inventory_.slots();
  // Without it the oldest slot is taken to be the first above it.
  report_.floor = read_floor_ ? *read_floor_ : slots.empty() ? Slot(0) : slots.front() - 1;
  return Status::ok();
}

Status Verification::check_slots() {
  Slot expected = report_.floor + 1;
  for (const Slot listed : inventory_.slots()) {
    if (listed <= report_.floor) {
      ++report_.leftovers;
      continue;
    }
    BL_ASSIGN_OR_RETURN(const Slot absent, check_unlisted(expected, listed));
    if (absent != listed) {
      missing(manifest_key(absent),
              fmt::format("although slots above the floor {} are dense and {} is there",
                          report_.floor.value, manifest_key(listed)));
    }
    BL_ASSIGN_OR_RETURN(const bool there, check_slot(listed));
    if (!there) missing(manifest_key(listed), "though it was listed");
    expected = listed + 1;
  }
  // What a listing does not show may stand there all the same: a slot put since, where the floor
  // may have passed all others; or a folder, which no reader gets past.
  BL_ASSIGN_OR_RETURN(const bool there, check_slot(expected));
  if (!there && report_.slots == 0) {
    missing(manifest_key(expected),
            fmt::format("although one slot above the floor {} always stands", report_.floor.value));
  }
  report_.complete = newest_ && newest_->head.slot == report_.newest;
  return Status::ok();
}

/// Checks slots in [from, end), which the listing does not show: of slots that were put after it
/// began, it may show a later one alone. The first that is really missing, or `end`. No more is
/// asked for: a gap can be of any width.
Result<Slot> Verification::check_unlisted(Slot from, Slot end) {
  for (; from < end; ++from) {
    BL_ASSIGN_OR_RETURN(const bool there, check_slot(from));
    if (!there) break;
  }
  return from;
}

/// False where the slot is missing, which is not noted.
Result<bool> Verification::check_slot(Slot slot) {
  const std::string key = manifest_key(slot);
  BL_ASSIGN_OR_RETURN(auto stored, read({key, kHeadMaxBytes}, [&](ByteSpan bytes) {
                        return decode_head(stream_.uuid(), slot, bytes);
                      }));
  if (stored.missing) return false;
  ++report_.slots;
  report_.newest = slot;
  if (!stored.value) return true;
  const StoredHead& head = *stored.value;
  if (newest_ && newest_->head.slot + 1 == slot) {
    if (head.head.previous_crc != newest_->crc) {
      problem(key,
              fmt::format("continues a head with CRC {:08x}, but {} has {:08x}",
                          head.head.previous_crc, manifest_key(newest_->head.slot), newest_->crc));
    }
    for (const std::string& text : transition_problems(newest_->head, head.head)) {
      problem(key, text);
    }
  }
  newest_ = std::move(stored.value);
  return true;
}

Status Verification::check_history(const Head& head) {
  report_.first_step = trimmed_below_ = head.first_step;
  report_.next_step = head.next_step;
  const std::string key = manifest_key(head.slot);
  std::vector<SegmentRef> roots;  // In step order: higher levels are older.
  for (const auto& level : head.segments | std::views::reverse) {
    roots.insert(roots.end(), level.begin(), level.end());
  }
  const Step tail_begin = head.tail.empty() ? head.next_step : head.tail.front().first_step;
  const Step begin = roots.empty() ? tail_begin : roots.front().first_step;
  const bool from_start = begin == Step(0);
  HistoryChecks checks{.sequences = SequenceCheck(from_start),
                       .batches = BatchCheck(stream_, depth_,
                                             RecordCheck(from_start && head.first_step == Step(0),
                                                         membership_changes(head)))};
  for (std::size_t i = 0; i < roots.size(); ++i) {
    const Step end = i + 1 < roots.size() ? roots[i + 1].first_step : tail_begin;
    BL_RETURN_IF_ERROR(walk_segment(roots[i], end, checks));
  }
  for (const Entry& entry : head.tail) BL_RETURN_IF_ERROR(check_entry(key, entry, checks));
  for (const ProducerRow& row : head.producers) {
    if (const auto wrong = checks.sequences.check_row(row)) problem(key, *wrong);
  }
  report_.samples = checks.batches.records().samples();
  report_.tokens = checks.batches.records().tokens();
  return Status::ok();
}

Status Verification::walk_segment(const SegmentRef& ref, Step end, HistoryChecks& checks) {
  const std::string key = segment_key(ref.name());
  const auto claim = inventory_.claim(ref.name());
  if (claim && claim->again) problem(key, "referred to twice");
  if (end <= report_.first_step) {
    if (claim && !claim->again) ++report_.trimmed.segments;
  } else {
    if (report_.segments.size() <= ref.level) report_.segments.resize(ref.level + 1);
    ++report_.segments[ref.level];
  }
  BL_ASSIGN_OR_RETURN(const auto reading, read({key, ref.size_bytes}, [&](ByteSpan bytes) {
                        return decode_segment(stream_.uuid(), ref, bytes);
                      }));
  const std::optional<Segment>& segment = reading.value;
  if (!segment) {
    checks.skip();
    if (reading.missing) {
      BL_ASSIGN_OR_RETURN(const bool kept, is_still_kept(end));
      if (!kept) return Status::ok();
      missing(key, "though the manifest refers to it");
    }
    report_.complete = false;
    return Status::ok();
  }
  if (segment->end_step != end) {
    problem(key, fmt::format("ends at step {}, but what follows it begins at {}",
                             segment->end_step.value, end.value));
  }
  for (const Entry& entry : segment->entries) {
    BL_RETURN_IF_ERROR(check_entry(key, entry, checks));
  }
  const auto& children = segment->children;
  for (std::size_t i = 0; i < children.size(); ++i) {
    const Step child_end = i + 1 < children.size() ? children[i + 1].first_step : segment->end_step;
    BL_RETURN_IF_ERROR(walk_segment(children[i], child_end, checks));
  }
  return Status::ok();
}

Status Verification::check_entry(const std::string& holder, const Entry& entry,
                                 HistoryChecks& checks) {
  ++report_.entries;
  report_.steps += entry.steps;
  report_.batch_bytes += entry.size_bytes;
  if (const auto wrong = checks.sequences.add(entry)) problem(holder, *wrong);
  if (entry.end_step() > report_.first_step) {
    BL_ASSIGN_OR_RETURN(const bool whole, check_object(holder, entry));
    if (whole) return check_batch(entry, checks.batches);
    checks.batches.skip();
    return Status::ok();
  }
  const auto claim = inventory_.claim(entry.object());
  if (claim && !claim->again) ++report_.trimmed.batches;
  return Status::ok();
}

/// Whether the object is there in its full size.
Result<bool> Verification::check_object(const std::string& holder, const Entry& entry) {
  const DataName name = entry.object();
  const auto claim = inventory_.claim(name);
  if (claim && !claim->again && claim->size_bytes == entry.size_bytes) return true;
  const std::string key = data_key(name);
  const std::string step = fmt::format("step {} in {}", entry.first_step.value, holder);
  if (claim && claim->again) problem(key, "committed twice, the second time as " + step);
  if (claim && claim->size_bytes == entry.size_bytes) return true;
  // Put after the listing had passed, or missing; or something else than it should be.
  const auto info = stream_.objects().head(key, call_);
  if (info.is(ErrorKind::kCorruption)) {
    problem(std::string(info.status().message()));
    return false;
  }
  if (!info.is_ok()) return info.status();
  if (!*info) {
    BL_ASSIGN_OR_RETURN(const bool kept, is_still_kept(entry.end_step()));
    if (kept) missing(key, fmt::format("though {} is stored there", step));
    return false;
  }
  if ((*info)->size_bytes == entry.size_bytes) return true;
  const Status wrong = wrong_size(key, (*info)->size_bytes, entry.size_bytes, step);
  problem(std::string(wrong.message()));
  return false;
}

Status Verification::check_batch(const Entry& entry, BatchCheck& batches) {
  BL_ASSIGN_OR_RETURN(const auto problems, batches.check(entry, call_));
  if (problems.empty()) return Status::ok();
  BL_ASSIGN_OR_RETURN(const bool kept, is_still_kept(entry.end_step()));  // Removed meanwhile?
  if (kept)
    for (const std::string& text : problems) problem(text);
  return Status::ok();
}

Status Verification::check_producers(const Head& head) {
  report_.producers = head.producers.size();
  for (const ProducerRow& row : head.producers) {
    if (!row.state.ref) continue;
    if (row.state.ref->seq + 1 != row.next_seq) {
      problem(manifest_key(head.slot),
              fmt::format("{}'s state is that after batch {}, but batch {} is next", row.producer,
                          row.state.ref->seq.value, row.next_seq.value));
    }
    BL_RETURN_IF_ERROR(check_state(row));
  }
  return Status::ok();
}

Status Verification::check_state(const ProducerRow& row) {
  const std::string key = data_key(row.state_object());
  inventory_.claim(row.state_object());
  BL_ASSIGN_OR_RETURN(const auto state, read({key, row.state.ref->size_bytes}, [&](ByteSpan bytes) {
                        return decode_state(stream_.uuid(), row, bytes);
                      }));
  if (!state.missing) return Status::ok();
  BL_ASSIGN_OR_RETURN(const bool named, is_still_named([&](const Head& head) {
                        const ProducerRow* now = head.find_producer(row.producer);
                        return now != nullptr && now->state == row.state;
                      }));
  if (named) missing(key, "though the manifest names it");
  return Status::ok();
}

Status Verification::check_memberships(const Head& head) {
  report_.memberships = head.memberships.size();
  for (const MembershipRow& row : head.memberships) {
    if (!row.ref) continue;
    const std::string key = data_key(row.object());
    inventory_.claim(row.object());
    BL_ASSIGN_OR_RETURN(const auto keys, read({key, row.ref->size_bytes}, [&](ByteSpan bytes) {
                          return decode_membership(stream_.uuid(), row, bytes);
                        }));
    if (!keys.missing) continue;
    BL_ASSIGN_OR_RETURN(const bool named, is_still_named([&](const Head& now) {
                          return std::ranges::count(now.memberships, row) > 0;
                        }));
    if (named) missing(key, "though the manifest names it");
  }
  return Status::ok();
}

/// Damage in any of them stops all trims. One that is gone was removed since it was listed.
Status Verification::check_pins() {
  std::vector<std::string> keys;
  BL_RETURN_IF_ERROR(for_each_key(stream_, kPinPrefix, call_,
                                  [&](const std::string& key) { keys.push_back(key); }));
  std::ranges::sort(keys);
  for (const std::string& key : keys) {
    if (const auto name = parse_pin_key(key)) {
      BL_ASSIGN_OR_RETURN(const auto pin, read({key, kSmallObjectMaxBytes}, [&](ByteSpan bytes) {
                            return decode_pin(stream_.uuid(), *name, bytes);
                          }));
      ++report_.pins;
      if (pin.value && pin.value->step < report_.first_step) ++report_.void_pins;
    } else if (const auto group = parse_live_cursor_key(key)) {
      BL_ASSIGN_OR_RETURN(const auto cursor, read({key, kSmallObjectMaxBytes}, [&](ByteSpan bytes) {
                            return decode_live_cursor(stream_.uuid(), *group, bytes);
                          }));
      if (cursor.missing) missing(key, "though it was listed and nothing removes it");
      ++report_.cursors;
    }
  }
  return Status::ok();
}

/// The head that is the newest by now; null where it is damaged.
Result<HeadPtr> Verification::newest_by_now() {
  reader_.adopt(std::make_shared<const StoredHead>(*newest_));
  Result<HeadPtr> newest = reader_.latest(call_);
  if (newest.is(ErrorKind::kCorruption)) return HeadPtr();
  return newest;
}

/// Whether the newest head `names` an object: once a later commit names another one, a reclaimer
/// may remove it, and the floor need not rise for that. True where that head is damaged.
template <class Names>
Result<bool> Verification::is_still_named(Names names) {
  BL_ASSIGN_OR_RETURN(const HeadPtr newest, newest_by_now());
  return newest == nullptr || names(newest->head);
}

/// Whether the newest head still has a step below `end`, likewise.
Result<bool> Verification::is_still_kept(Step end) {
  if (end <= trimmed_below_) return false;
  BL_ASSIGN_OR_RETURN(const HeadPtr newest, newest_by_now());
  if (newest != nullptr) trimmed_below_ = newest->head.first_step;
  return end > trimmed_below_;
}

/// What a reclaimer removed meanwhile would look like damage.
Status Verification::check_still() {
  if (!read_floor_) return Status::ok();
  BL_ASSIGN_OR_RETURN(const Slot now, read_floor(stream_, call_));
  if (now == *read_floor_) return Status::ok();
  return Status::conflict(fmt::format(
      "the floor rose from {} to {} while the stream was being verified: run it again while "
      "nothing is reclaimed",
      read_floor_->value, now.value));
}

}  // namespace

Result<VerifyReport> verify_stream(const Stream& stream, VerifyDepth depth,
                                   const CallOptions& call) {
  BL_ASSIGN_OR_RETURN(StreamInventory inventory, StreamInventory::list(stream, call));
  return Verification(stream, depth, std::move(inventory), call).run();
}

}  // namespace batchloom::store
