// SPDX-License-Identifier: Apache-2.0
// libFuzzer's input is tried as the bytes of a mixture's state, as fields below a right mark,
// version and CRC, and as edits to a good state. What can be decoded is stored again and drawn
// from.
#include <algorithm>
#include <array>
#include <vector>

#include "batchloom/base/hash.h"
#include "batchloom/planning/mixture.h"
#include "tests/fuzz/fuzzing.h"

namespace batchloom::planning {
namespace {

class ShortRecords final : public RecordLengths {
 public:
  Result<std::uint32_t> tokens(model::SourceId source, model::RecordIndex record) override {
    return static_cast<std::uint32_t>((record.value * 7 + source.value) % 23);
  }
};

Schedule ramp() {
  return Schedule::create({{model::Step(0), Weight(3)}, {model::Step(9), Weight(0), Ramp::kCosine}})
      .value();
}

void draw_from(const MixtureState& state) {
  MixtureConfig config{.unit = state.unit,
                       .units_per_step = kMaxSampleTokens,
                       .max_sample_tokens = state.max_sample_tokens,
                       .sources = {}};
  config.sources.resize(state.sources.size());
  for (std::size_t i = 0; i < config.sources.size(); ++i) {
    config.sources[i] = {.records = 20,
                         .weight = i % 2 == 0 ? Schedule(Weight(1 + i)) : ramp(),
                         .exhausted = static_cast<Exhausted>(i % 4)};
  }
  ShortRecords lengths;
  const auto mixture = Mixture::resume(config, state, lengths);
  if (!mixture.is_ok()) return fuzz::check_refusal(mixture.status());
  for (int i = 0; i < 20; ++i) {
    const auto draw = (*mixture)->draw();
    if (!draw.is_ok() || !draw->has_value()) return;
    BL_CHECK((*draw)->part.tokens <= state.max_sample_tokens, "a part that is too long");
  }
}

void attempt(ByteSpan bytes) {
  const auto state = decode_mixture_state(bytes);
  if (!state.is_ok()) return fuzz::check_refusal(state.status());
  const Bytes again = encode_mixture_state(*state);
  BL_CHECK(std::equal(again.begin(), again.end(), bytes.begin(), bytes.end()),
           "two states have the same fields");
  draw_from(*state);
}

/// `bytes` between a right mark with its version and a right CRC.
void attempt_fields(ByteSpan sample, ByteSpan bytes) {
  constexpr std::size_t kVersionEnd = 6;
  Bytes whole(sample.begin(), sample.begin() + kVersionEnd);
  whole.insert(whole.end(), bytes.begin(), bytes.end());
  std::array<std::byte, 4> crc;
  store_le(crc32c(whole), crc.data());
  whole.insert(whole.end(), crc.begin(), crc.end());
  attempt(whole);
}

Bytes good_state() {
  MixtureState state;
  state.step = model::Step(5);
  state.max_sample_tokens = 8;
  state.version = WeightsVersion(2);
  state.log = {{model::Step(6),
                WeightsVersion(2),
                {{model::SourceId(0), Weight(1)}, {model::SourceId(2), Weight(0)}}}};
  state.sources.resize(4);
  state.sources[1].credit = 1'000;
  state.sources[2].credit = -1'000;
  return encode_mixture_state(state);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Bytes sample = good_state();
  const ByteSpan input = fuzz::input_bytes(data, size);
  attempt(input);
  attempt_fields(sample, input);
  const Bytes changed = fuzz::edited(sample, input);
  attempt_fields(sample, ByteSpan(changed).subspan(6, changed.size() - 10));
  return 0;
}

}  // namespace batchloom::planning
