// SPDX-License-Identifier: Apache-2.0
// Mixtures for tests: lengths without an index, and quotas reckoned another way.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "batchloom/base/hash.h"
#include "batchloom/planning/mixture.h"

namespace batchloom::planning {

/// Lengths by a function of (source, record).
class FakeLengths final : public RecordLengths {
 public:
  using Function = std::function<std::uint32_t(std::uint32_t, std::uint64_t)>;

  explicit FakeLengths(Function length) : length_(std::move(length)) {}

  Result<std::uint32_t> tokens(model::SourceId source, model::RecordIndex record) override {
    if (failing) return Status::unavailable("the index does not answer");
    return length_(source.value, record.value);
  }

  bool failing = false;

 private:
  Function length_;
};

/// 1 to `longest` tokens.
inline FakeLengths uneven_lengths(std::uint32_t longest) {
  return FakeLengths([longest](std::uint32_t source, std::uint64_t record) {
    const std::uint64_t bits = mix64(record * 1'000'003 + source);
    return bits % 4 == 0 ? longest : static_cast<std::uint32_t>(1 + (bits >> 8) % longest);
  });
}

inline Schedule weighs(std::uint64_t weight) {
  return Schedule(Weight(weight));
}

/// A source that repeats for ever.
inline MixtureSource endless(std::uint64_t records, Schedule weight) {
  return {.records = records, .weight = std::move(weight), .exhausted = Exhausted::kRepeat};
}

/// The quotas of a mixture whose sources all have weights in every step: sums of exact shares, in
/// 2^-60 of a token or sample. Nothing here comes from the mixture but its draws.
class QuotaBook {
 public:
  __extension__ using Wide = __int128;
  static constexpr int kBits = 60;

  explicit QuotaBook(StepUnit unit, std::size_t sources)
      : unit_(unit), quota_(sources), drawn_(sources) {}

  /// `weights` are those of the draw's step, below 2^36.
  void add(const Part& part, const std::vector<std::uint64_t>& weights) {
    const std::uint64_t units = unit_ == StepUnit::kTokens ? part.tokens : 1;
    Wide total = 0;
    for (const std::uint64_t weight : weights) total += weight;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      quota_[i] += (Wide{weights[i]} * units << kBits) / total;
    }
    drawn_[part.id.source.value] += units;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      behind_ = std::max(behind_, off(i));
      ahead_ = std::max(ahead_, -off(i));
    }
  }

  /// The largest distances so far, after a draw, in 1/1,000 of a unit, rounded down.
  std::int64_t behind_milli() const { return static_cast<std::int64_t>(behind_ * 1000 >> kBits); }
  std::int64_t ahead_milli() const { return static_cast<std::int64_t>(ahead_ * 1000 >> kBits); }
  std::int64_t off_milli() const { return std::max(behind_milli(), ahead_milli()); }
  /// Of one source, now.
  std::int64_t credit_milli(std::size_t source) const {
    return static_cast<std::int64_t>(off(source) * 1000 >> kBits);
  }

 private:
  Wide off(std::size_t source) const { return quota_[source] - (Wide{drawn_[source]} << kBits); }

  StepUnit unit_;
  std::vector<Wide> quota_;
  std::vector<std::uint64_t> drawn_;
  Wide behind_ = 0;
  Wide ahead_ = 0;
};

}  // namespace batchloom::planning
