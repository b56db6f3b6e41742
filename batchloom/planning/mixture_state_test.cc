// SPDX-License-Identifier: Apache-2.0
// Stored states, and going on from them.
#include "batchloom/planning/mixture_state.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>

#include "batchloom/base/hash.h"
#include "batchloom/base/random.h"
#include "batchloom/planning/mixture.h"
#include "batchloom/planning/mixture_testing.h"

namespace batchloom::planning {
namespace {

constexpr std::size_t kHeaderBytes = 40;

/// All kinds of sources and schedules, and few records, so that passes end all the time.
MixtureConfig busy_config(StepUnit unit, std::uint64_t seed) {
  Random random(seed);
  MixtureConfig config{.seed = seed,
                       .unit = unit,
                       .units_per_step = unit == StepUnit::kTokens ? 150U : 7U,
                       .max_sample_tokens = 30,
                       .sources = {}};
  const auto any_weight_or_none = [&] {
    return Weight(random.below(3) == 0 ? 0 : random.below(100));
  };
  const std::size_t sources = 2 + random.below(8);
  for (std::size_t i = 0; i < sources; ++i) {
    std::vector<WeightPoint> points = {{model::Step(0), any_weight_or_none()}};
    while (random.below(6) != 0) {
      points.push_back({points.back().step + 1 + random.below(9), any_weight_or_none(),
                        static_cast<Ramp>(random.below(3))});
    }
    MixtureSource& source =
        config.sources.emplace_back(endless(random.below(60), Schedule::create(points).value()));
    source.order = static_cast<Order>(random.below(2));
    if (random.below(3) == 0) source.exhausted = Exhausted::kDrop;
  }
  config.sources.push_back(endless(40, weighs(3)));
  return config;
}

/// A step later now and then, sometimes with an update of the weights.
void disturb(Mixture& mixture, Random& random) {
  const model::Step from = mixture.state().step + 1 + random.below(5);
  const auto source = static_cast<std::uint32_t>(random.below(mixture.config().sources.size() - 1));
  const std::vector update = {SourceWeight{model::SourceId(source), Weight(random.below(100))}};
  if (random.below(6) != 0) return;
  ASSERT_TRUE(mixture.set_weights(from, update).is_ok());
}

RC_GTEST_PROP(MixtureState, GoesOnExactlyFromAnyDraw, (std::uint64_t seed)) {
  FakeLengths lengths = uneven_lengths(70);
  const StepUnit unit = *rc::gen::element(StepUnit::kTokens, StepUnit::kSamples);
  const MixtureConfig config = busy_config(unit, seed);
  const auto whole = Mixture::create(config, lengths).value();
  auto resumed = Mixture::create(config, lengths).value();
  Random random(seed);
  for (int i = 0; i < 400; ++i) {
    if (random.below(3) == 0) {
      const Bytes bytes = encode_mixture_state(resumed->state());
      const MixtureState state = decode_mixture_state(bytes).value();
      RC_ASSERT(state == resumed->state());
      RC_ASSERT(encode_mixture_state(state) == bytes);
      resumed = Mixture::resume(config, state, lengths).value();
    }
    Random same = random;
    disturb(*whole, random);
    disturb(*resumed, same);
    RC_ASSERT(whole->draw().value() == resumed->draw().value());
    RC_ASSERT(whole->state() == resumed->state());
  }
  RC_ASSERT(whole->next_step().value() == resumed->next_step().value());
  RC_ASSERT(whole->next_step().value() == resumed->next_step().value());
}

TEST(MixtureState, OfAThousandSourcesFitsInto64KiB) {
  FakeLengths lengths = uneven_lengths(30);
  MixtureConfig config{.unit = StepUnit::kTokens,
                       .units_per_step = 5'000,
                       .max_sample_tokens = 30,
                       .sources = std::vector(1'000, endless(1'000'000'000'000, weighs(1)))};
  const auto mixture = Mixture::create(config, lengths).value();
  std::vector<SourceWeight> all;
  for (std::uint32_t i = 0; i < 1'000; ++i) all.push_back({model::SourceId(i), Weight(1 + i)});
  for (std::uint64_t step = 0; step < 20; ++step) {
    ASSERT_TRUE(mixture->next_step().is_ok());
    ASSERT_TRUE(mixture->set_weights(model::Step(step + 1), all).is_ok());
  }
  while (mixture->set_weights(model::Step(100), all).is_ok()) continue;
  while (mixture->set_weights(model::Step(100), std::span(all).first(1)).is_ok()) continue;
  EXPECT_GE(mixture->state().log.size(), 2U);
  const Bytes stored = encode_mixture_state(mixture->state());
  EXPECT_LE(stored.size(), 64U << 10);
  const MixtureState read = decode_mixture_state(stored).value();
  EXPECT_EQ(read, mixture->state());
  EXPECT_EQ(encode_mixture_state(read), stored);
  const auto resumed = Mixture::resume(config, read, lengths).value();
  for (int step = 0; step < 100; ++step) {  // Past the step at which the updates come into force.
    ASSERT_EQ(resumed->next_step().value(), mixture->next_step().value());
  }
  EXPECT_EQ(encode_mixture_state(resumed->state()), encode_mixture_state(mixture->state()));
}

/// A state with something in every field.
MixtureState small_state() {
  MixtureState state;
  state.unit = StepUnit::kSamples;
  state.max_sample_tokens = 9;
  state.step = model::Step(5);
  state.step_units = 3;
  state.version = WeightsVersion(4);
  state.log = {{model::Step(5), WeightsVersion(2), {{model::SourceId(1), Weight(7)}}},
               {model::Step(6),
                WeightsVersion(4),
                {{model::SourceId(0), Weight(0)}, {model::SourceId(1), Weight(8)}}}};
  state.sources = {
      {model::Epoch(2), 11, model::PartIndex(1), 12'345, Weight(6), false},
      {model::Epoch(0), 3, model::PartIndex(0), -12'345, std::nullopt, true},
  };
  return state;
}

/// As somebody would store it who knows how to make a CRC.
Bytes with_right_crc(Bytes bytes) {
  const std::size_t end = bytes.size() - 4;
  store_le(crc32c(ByteSpan(bytes).first(end)), &bytes[end]);
  return bytes;
}

TEST(MixtureState, RoundTrips) {
  EXPECT_EQ(decode_mixture_state(encode_mixture_state(small_state())).value(), small_state());
}

TEST(MixtureState, LiesAsDocumented) {
  const Bytes bytes = encode_mixture_state(small_state());
  EXPECT_EQ(bytes.size(), kHeaderBytes + 2 * 34 + 2 * 16 + 3 * 12 + 4);
  EXPECT_EQ(as_text(ByteSpan(bytes).first(4)), "BLMX");
  EXPECT_EQ(load_le<std::uint64_t>(&bytes[20]), 5U) << "the step";
  EXPECT_EQ(load_le<std::uint64_t>(&bytes[kHeaderBytes]), 11U) << "the first source's place";
  EXPECT_EQ(load_le<std::uint64_t>(&bytes[kHeaderBytes + 34 + 16]), UINT64_MAX) << "no weight";
}

TEST(MixtureState, AnyDamagedByteIsNamed) {
  const Bytes bytes = encode_mixture_state(small_state());
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    Bytes damaged = bytes;
    damaged[bit / 8] ^= std::byte{1} << (bit % 8);
    const Status status = decode_mixture_state(damaged).status();
    const bool version = bit / 16 == 2;
    EXPECT_TRUE(status.is(version ? ErrorKind::kInvalid : ErrorKind::kCorruption)) << bit;
    EXPECT_EQ(status.message().find("mixture state: at byte "), 0U) << status.message();
  }
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const Status status = decode_mixture_state(ByteSpan(bytes).first(size)).status();
    EXPECT_TRUE(status.is(ErrorKind::kCorruption)) << size << ": " << status.to_string();
  }
}

/// Whatever hostile bytes decode to can be stored, checked and drawn from.
void expect_harmless(const Bytes& bytes) {
  const Result<MixtureState> state = decode_mixture_state(bytes);
  if (!state.is_ok()) {
    EXPECT_TRUE(state.is(ErrorKind::kCorruption)) << state.status().to_string();
    EXPECT_EQ(state.status().message().find("mixture state: at byte "), 0U);
    return;
  }
  EXPECT_EQ(encode_mixture_state(*state), bytes);
  FakeLengths lengths = uneven_lengths(20);
  const MixtureConfig config{.unit = state->unit,
                             .units_per_step = 40,
                             .max_sample_tokens = state->max_sample_tokens,
                             .sources = {endless(12, weighs(1)), endless(4, weighs(2))}};
  const auto mixture = Mixture::resume(config, *state, lengths);
  if (!mixture.is_ok()) {
    EXPECT_TRUE(mixture.is(ErrorKind::kInvalid)) << mixture.status().to_string();
    return;
  }
  for (int i = 0; i < 3; ++i) static_cast<void>((*mixture)->next_step());
}

TEST(MixtureState, DamageUnderARightCrcIsHarmless) {
  const Bytes bytes = encode_mixture_state(small_state());
  for (std::size_t at = 6; at + 4 < bytes.size(); ++at) {
    for (const unsigned value : {0x00U, 0x01U, 0x7fU, 0x80U, 0xffU}) {
      Bytes damaged = bytes;
      damaged[at] = static_cast<std::byte>(value);
      expect_harmless(with_right_crc(damaged));
    }
  }
  for (std::size_t size = 10; size < bytes.size(); ++size) {
    const Bytes cut = with_right_crc(Bytes(bytes.begin(), bytes.begin() + static_cast<long>(size)));
    EXPECT_TRUE(decode_mixture_state(cut).is(ErrorKind::kCorruption)) << size;
  }
}

std::string corruption_of(const MixtureState& state) {
  const Status status = decode_mixture_state(encode_mixture_state(state)).status();
  return status.is(ErrorKind::kCorruption) ? std::string(status.message()) : "";
}

TEST(MixtureState, NamesWhatCannotBe) {
  const auto changed = [](auto change) {
    MixtureState state = small_state();
    change(state);
    return corruption_of(state);
  };
  EXPECT_NE(
      changed([](auto& state) { ++state.sources[0].credit; }).find("credits do not add up to 0"),
      std::string::npos);
  const std::int64_t most = max_credit(StepUnit::kSamples, 9);
  EXPECT_NE(changed([&](auto& state) {
              state.sources[0].credit = most + 1;
              state.sources[1].credit = -most - 1;
            }).find("at byte 48: a credit of"),
            std::string::npos);
  EXPECT_NE(
      changed([](auto& state) { state.max_sample_tokens = 0; }).find("max_sample_tokens is 0"),
      std::string::npos);
  EXPECT_NE(changed([](auto& state) {
              state.log[0].from_step = model::Step(4);
            }).find("from step 4 on: before"),
            std::string::npos);
  EXPECT_NE(changed([](auto& state) {
              state.log[1].version = WeightsVersion(5);
            }).find("version 5 of the weights, of 4"),
            std::string::npos);
  EXPECT_NE(changed([](auto& state) {
              std::swap(state.log[1].weights[0], state.log[1].weights[1]);
            }).find("a new weight of source 0"),
            std::string::npos);
  EXPECT_NE(changed([](auto& state) {
              state.log[0].weights[0].source = model::SourceId(2);
            }).find("a new weight of source 2"),
            std::string::npos);
  EXPECT_NE(changed([](auto& state) { state.log[0].weights.clear(); }).find("0 new weights"),
            std::string::npos);
  EXPECT_NE(changed([](auto& state) { state.sources.clear(); }).find("0 sources in"),
            std::string::npos);
}

TEST(MixtureState, CountsBeyondTheBytesAreNamed) {
  const auto with_count = [](std::size_t at) {
    Bytes bytes = encode_mixture_state(small_state());
    store_le(std::uint32_t{200}, &bytes[at]);
    return std::string(decode_mixture_state(with_right_crc(bytes)).status().message());
  };
  EXPECT_EQ(with_count(12), "mixture state: at byte 12: 200 sources in 160 bytes");
  constexpr std::size_t kFirstEntry = kHeaderBytes + 2 * 34;
  EXPECT_EQ(with_count(kFirstEntry + 12),
            "mixture state: at byte 120: 200 new weights in 52 bytes");
}

TEST(MixtureState, OfALaterVersionIsInvalid) {
  Bytes bytes = encode_mixture_state(small_state());
  bytes[4] = std::byte{2};
  const Status status = decode_mixture_state(with_right_crc(bytes)).status();
  EXPECT_TRUE(status.is(ErrorKind::kInvalid));
  EXPECT_NE(status.message().find("at byte 4: format version 2 is unknown"), std::string::npos);
}

TEST(MixtureState, OfAnotherMixtureIsRefused) {
  FakeLengths lengths = uneven_lengths(30);
  const MixtureConfig config = busy_config(StepUnit::kTokens, 3);
  const auto mixture = Mixture::create(config, lengths).value();
  for (int i = 0; i < 30; ++i) ASSERT_TRUE(mixture->draw().is_ok());
  const auto refusal = [&](auto change) {
    MixtureConfig other = config;
    change(other);
    const auto resumed = Mixture::resume(other, mixture->state(), lengths);
    return resumed.is(ErrorKind::kInvalid) ? std::string(resumed.status().message()) : "";
  };
  EXPECT_EQ(refusal([](auto&) {}), "");
  EXPECT_NE(
      refusal([](auto& other) { other.sources.pop_back(); }).find("cannot go on from a state"),
      std::string::npos);
  EXPECT_NE(refusal([](auto& other) { other.max_sample_tokens = 29; }).find("max_sample_tokens 29"),
            std::string::npos);
  EXPECT_NE(refusal([](auto& other) { other.unit = StepUnit::kSamples; }).find("other units"),
            std::string::npos);
  EXPECT_NE(refusal([](auto& other) { other.sources.back().records = 1; }).find("has 1 records"),
            std::string::npos);
}

}  // namespace
}  // namespace batchloom::planning
