// SPDX-License-Identifier: Apache-2.0
// The stored form, little-endian throughout:
//
//   header  magic, version, unit, ended, max_sample_tokens, sources, entries, step, step_units,
//           weights version
//   rows    one per source: place, credit, set_weight (all ones: none), epoch, part, gone, 0
//   log     per entry: from_step, version, count, then (source, weight) pairs
//   crc     CRC-32C of all that is before
//
// Reading checks in this order: magic, version, CRC, then field by field.
#include "batchloom/planning/mixture_state.h"

#include <fmt/format.h>

#include <string_view>
#include <type_traits>

#include "batchloom/base/check.h"
#include "batchloom/base/hash.h"

namespace batchloom::planning {
namespace {

constexpr std::uint32_t kStateMagic = 0x584d4c42;  // "BLMX"
constexpr std::uint16_t kStateVersion = 1;
constexpr std::uint64_t kNoWeight = UINT64_MAX;
constexpr std::size_t kStateVersionEnd = 6;
constexpr std::size_t kStateCrcBytes = 4;
constexpr std::size_t kSourceRowBytes = 34;
constexpr std::size_t kLogWeightBytes = 12;

class StateWriter {
 public:
  template <class T>
  void put(T value) {
    std::byte buffer[sizeof(T)];
    store_le(value, buffer);
    bytes_.insert(bytes_.end(), buffer, buffer + sizeof(T));
  }
  Bytes finish() {
    put(crc32c(bytes_));
    return std::move(bytes_);
  }

 private:
  Bytes bytes_;
};

/// Reads integers in order; what is missing reads as 0 and makes the reader end with a complaint.
class StateReader {
 public:
  explicit StateReader(ByteSpan bytes) : bytes_(bytes) {}

  template <class T>
  T get() {
    at_ = next_;
    if (bytes_.size() - next_ < sizeof(T)) {
      cut_short_ = true;
      return 0;
    }
    next_ += sizeof(T);
    return load_le<T>(&bytes_[at_]);
  }

  std::size_t left() const { return bytes_.size() - next_; }
  bool cut_short() const { return cut_short_; }
  /// At the integer read last.
  Status corrupt(std::string_view reason) const {
    return Status::corruption(fmt::format("mixture state: at byte {}: {}", at_, reason));
  }

 private:
  ByteSpan bytes_;
  std::size_t at_ = 0;
  std::size_t next_ = 0;
  bool cut_short_ = false;
};

/// Fields in the order of the bytes; stops at the first that cannot be.
class StateDecoder {
 public:
  explicit StateDecoder(ByteSpan bytes) : in_(bytes) {}

  Result<MixtureState> decode() {
    BL_RETURN_IF_ERROR(decode_header());
    for (SourceState& row : state_.sources) BL_RETURN_IF_ERROR(decode_row(row));
    if (sum_ != 0) return in_.corrupt("the sources' credits do not add up to 0");
    for (WeightsEntry& entry : state_.log) BL_RETURN_IF_ERROR(decode_entry(entry));
    if (in_.cut_short()) return in_.corrupt("the state ends here");
    if (in_.left() != 0) return in_.corrupt(fmt::format("{} bytes too many", in_.left()));
    return std::move(state_);
  }

 private:
  Status decode_header();
  Status decode_row(SourceState& row);
  Status decode_entry(WeightsEntry& entry);

  StateReader in_;
  MixtureState state_;
  std::int64_t max_credit_ = 0;
  __extension__ __int128 sum_ = 0;
};

Status StateDecoder::decode_header() {
  static_cast<void>(in_.get<std::uint32_t>());  // Magic and version were looked at before.
  static_cast<void>(in_.get<std::uint16_t>());
  const auto unit = in_.get<std::uint8_t>();
  if (unit > 1) return in_.corrupt(fmt::format("a step's unit is {}", unit));
  state_.unit = static_cast<StepUnit>(unit);
  const auto ended = in_.get<std::uint8_t>();
  if (ended > 1) return in_.corrupt(fmt::format("ended is {}, neither 0 nor 1", ended));
  state_.ended = ended != 0;
  state_.max_sample_tokens = in_.get<std::uint32_t>();
  if (state_.max_sample_tokens == 0 || state_.max_sample_tokens > kMaxSampleTokens) {
    return in_.corrupt(fmt::format("max_sample_tokens is {}", state_.max_sample_tokens));
  }
  max_credit_ = max_credit(state_.unit, state_.max_sample_tokens);
  const auto sources = in_.get<std::uint32_t>();
  if (sources == 0 || sources > kMaxSources || sources > in_.left() / kSourceRowBytes) {
    return in_.corrupt(fmt::format("{} sources in {} bytes", sources, in_.left()));
  }
  state_.sources.resize(sources);
  const auto entries = in_.get<std::uint32_t>();
  if (entries > kMaxLogEntries) return in_.corrupt(fmt::format("{} log entries", entries));
  state_.log.resize(entries);
  state_.step = model::Step(in_.get<std::uint64_t>());
  state_.step_units = in_.get<std::uint64_t>();
  if (state_.step_units > kMaxStepUnits) {
    return in_.corrupt(fmt::format("a step has {} tokens or samples", state_.step_units));
  }
  state_.version = WeightsVersion(in_.get<std::uint32_t>());
  if (state_.version.value < entries) {
    return in_.corrupt(fmt::format("{} log entries of {}", entries, state_.version.value));
  }
  return Status::ok();
}

Status StateDecoder::decode_row(SourceState& row) {
  row.place = in_.get<std::uint64_t>();
  row.credit = static_cast<std::int64_t>(in_.get<std::uint64_t>());
  if (row.credit > max_credit_ || row.credit < -max_credit_) {
    return in_.corrupt(fmt::format("a credit of {}, beyond {}", row.credit, max_credit_));
  }
  sum_ += row.credit;
  const auto weight = in_.get<std::uint64_t>();
  if (weight != kNoWeight) {
    if (weight > kMaxWeight.value) return in_.corrupt(fmt::format("a weight of {}", weight));
    row.set_weight = Weight(weight);
  }
  row.epoch = model::Epoch(in_.get<std::uint32_t>());
  row.part = model::PartIndex(in_.get<std::uint32_t>());
  const auto gone = in_.get<std::uint8_t>();
  if (gone > 1) return in_.corrupt(fmt::format("gone is {}, neither 0 nor 1", gone));
  row.gone = gone != 0;
  const auto filler = in_.get<std::uint8_t>();
  if (filler != 0) return in_.corrupt(fmt::format("a filler of {}, not 0", filler));
  return Status::ok();
}

Status StateDecoder::decode_entry(WeightsEntry& entry) {
  const WeightsEntry* before = &entry == state_.log.data() ? nullptr : &entry - 1;
  entry.from_step = model::Step(in_.get<std::uint64_t>());
  if (entry.from_step < (before ? before->from_step : state_.step)) {
    return in_.corrupt(fmt::format("new weights from step {} on: before those that precede them",
                                   entry.from_step.value));
  }
  entry.version = WeightsVersion(in_.get<std::uint32_t>());
  const bool ascends =
      before == nullptr || before->from_step < entry.from_step || before->version < entry.version;
  if (entry.version.value == 0 || entry.version > state_.version || !ascends) {
    return in_.corrupt(
        fmt::format("version {} of the weights, of {}", entry.version.value, state_.version.value));
  }
  const auto count = in_.get<std::uint32_t>();
  if (count == 0 || count > in_.left() / kLogWeightBytes) {
    return in_.corrupt(fmt::format("{} new weights in {} bytes", count, in_.left()));
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    const model::SourceId source(in_.get<std::uint32_t>());
    const bool follows = entry.weights.empty() || entry.weights.back().source < source;
    if (source.value >= state_.sources.size() || !follows) {
      return in_.corrupt(fmt::format("a new weight of source {}", source.value));
    }
    const Weight weight(in_.get<std::uint64_t>());
    if (weight > kMaxWeight) return in_.corrupt(fmt::format("a weight of {}", weight.value));
    entry.weights.push_back({source, weight});
  }
  return Status::ok();
}

}  // namespace

std::int64_t max_credit(StepUnit unit, std::uint32_t max_sample_tokens) {
  constexpr std::int64_t kParts = 28;
  const std::int64_t part = unit == StepUnit::kTokens ? max_sample_tokens : 1;
  return (kParts * part) << share_bits(unit);
}

Bytes encode_mixture_state(const MixtureState& state) {
  StateWriter out;
  out.put(kStateMagic);
  out.put(kStateVersion);
  out.put(static_cast<std::uint8_t>(state.unit));
  out.put(static_cast<std::uint8_t>(state.ended));
  out.put(state.max_sample_tokens);
  out.put(static_cast<std::uint32_t>(state.sources.size()));
  out.put(static_cast<std::uint32_t>(state.log.size()));
  out.put(state.step.value);
  out.put(state.step_units);
  out.put(state.version.value);
  for (const SourceState& row : state.sources) {
    out.put(row.place);
    out.put(static_cast<std::uint64_t>(row.credit));
    out.put(row.set_weight ? row.set_weight->value : kNoWeight);
    out.put(row.epoch.value);
    out.put(row.part.value);
    out.put(static_cast<std::uint8_t>(row.gone));
    out.put(std::uint8_t{0});
  }
  for (const WeightsEntry& entry : state.log) {
    out.put(entry.from_step.value);
    out.put(entry.version.value);
    out.put(static_cast<std::uint32_t>(entry.weights.size()));
    for (const SourceWeight& change : entry.weights) {
      out.put(change.source.value);
      out.put(change.weight.value);
    }
  }
  return out.finish();
}

Result<MixtureState> decode_mixture_state(ByteSpan bytes) {
  if (bytes.size() < kStateVersionEnd + kStateCrcBytes) {
    return Status::corruption(
        fmt::format("mixture state: at byte {}: the state ends here", bytes.size()));
  }
  if (const auto magic = load_le<std::uint32_t>(&bytes[0]); magic != kStateMagic) {
    return Status::corruption(
        fmt::format("mixture state: at byte 0: {:08x} is not the mark of one", magic));
  }
  if (const auto version = load_le<std::uint16_t>(&bytes[4]); version != kStateVersion) {
    return Status::invalid(
        fmt::format("mixture state: at byte 4: format version {} is unknown; this build reads "
                    "version {}: upgrade batchloom",
                    version, kStateVersion));
  }
  const ByteSpan content = bytes.first(bytes.size() - kStateCrcBytes);
  const auto stored = load_le<std::uint32_t>(&bytes[content.size()]);
  if (const std::uint32_t crc = crc32c(content); crc != stored) {
    return Status::corruption(
        fmt::format("mixture state: at byte {}: the CRC stored is {:08x}, that of the bytes {:08x}",
                    content.size(), stored, crc));
  }
  return StateDecoder(content).decode();
}

}  // namespace batchloom::planning
