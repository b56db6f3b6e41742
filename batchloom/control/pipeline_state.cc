// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/pipeline_state.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "batchloom/planning/mixture_state.h"

namespace batchloom::control {
namespace {

constexpr std::string_view kStateMark = "BLPS";
constexpr std::uint16_t kStateVersion = 1;
constexpr std::size_t kVersionAt = 4;
constexpr std::size_t kDigestAt = 6;
constexpr std::size_t kCountAt = 22;
constexpr std::size_t kRowsAt = 26;
constexpr std::size_t kRowBytes = 12;

Status damaged_state(std::size_t at, std::string_view reason) {
  return Status::corruption(fmt::format("pipeline state: byte {}: {}", at, reason));
}

RecordName row_at(ByteSpan bytes, std::size_t row) {
  const std::byte* at = bytes.data() + kRowsAt + row * kRowBytes;
  return {model::SourceId(load_le<std::uint32_t>(at)),
          model::RecordIndex(load_le<std::uint64_t>(at + 4))};
}

}  // namespace

Bytes encode_pipeline_state(const PipelineState& state) {
  Bytes bytes(kRowsAt + state.struck.size() * kRowBytes);
  const ByteSpan mark = as_bytes(kStateMark);
  std::copy(mark.begin(), mark.end(), bytes.begin());
  store_le(kStateVersion, &bytes[kVersionAt]);
  store_le(state.membership.low, &bytes[kDigestAt]);
  store_le(state.membership.high, &bytes[kDigestAt + 8]);
  store_le(static_cast<std::uint32_t>(state.struck.size()), &bytes[kCountAt]);
  for (std::size_t i = 0; i < state.struck.size(); ++i) {
    store_le(state.struck[i].source.value, &bytes[kRowsAt + i * kRowBytes]);
    store_le(state.struck[i].record.value, &bytes[kRowsAt + i * kRowBytes + 4]);
  }
  const Bytes mixture = planning::encode_mixture_state(state.planner.mixture);
  bytes.insert(bytes.end(), mixture.begin(), mixture.end());
  return bytes;
}

Result<PipelineState> decode_pipeline_state(ByteSpan bytes) {
  if (bytes.size() < kRowsAt) {
    return damaged_state(bytes.size(), fmt::format("it ends there; at least {} bytes", kRowsAt));
  }
  if (as_text(bytes.first(kStateMark.size())) != kStateMark)
    return damaged_state(0, "another mark");
  const auto version = load_le<std::uint16_t>(&bytes[kVersionAt]);
  if (version != kStateVersion) {
    return Status::invalid(fmt::format(
        "pipeline state: version {}, and this build knows {}; upgrade", version, kStateVersion));
  }
  const auto count = load_le<std::uint32_t>(&bytes[kCountAt]);
  if (count > kStruckMax) {
    return damaged_state(kCountAt,
                         fmt::format("{} records struck out; at most {}", count, kStruckMax));
  }
  const std::size_t rows_end = kRowsAt + count * kRowBytes;
  if (bytes.size() < rows_end) {
    return damaged_state(bytes.size(), fmt::format("it ends there; its rows end at {}", rows_end));
  }
  PipelineState state;
  state.membership.low = load_le<std::uint64_t>(&bytes[kDigestAt]);
  state.membership.high = load_le<std::uint64_t>(&bytes[kDigestAt + 8]);
  for (std::size_t row = 0; row < count; ++row) {
    const RecordName name = row_at(bytes, row);
    if (row > 0 && name <= state.struck.back()) {
      return damaged_state(kRowsAt + row * kRowBytes, "records struck out do not ascend");
    }
    state.struck.push_back(name);
  }
  Result<planning::MixtureState> mixture = planning::decode_mixture_state(bytes.subspan(rows_end));
  if (!mixture.is_ok()) {
    return mixture.status().with_context(
        fmt::format("pipeline state: the mixture's, from byte {} on", rows_end));
  }
  for (const RecordName& name : state.struck) {
    if (name.source.value < mixture->sources.size()) continue;
    return damaged_state(kRowsAt, fmt::format("a record of source {} is struck out, and there are "
                                              "{}",
                                              name.source.value, mixture->sources.size()));
  }
  state.planner.mixture = *std::move(mixture);
  return state;
}

}  // namespace batchloom::control
