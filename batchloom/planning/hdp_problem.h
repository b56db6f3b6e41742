// SPDX-License-Identifier: Apache-2.0
// One step as hybrid assignment sees it, and what no assignment by its rules can beat: short
// samples whole, long ones on a number of ranks that HdpCosts::degrees() allows.
//
//   work     (1 / R) x [ sum over s <= C of att(s)
//                        + (their tokens) x min over n <= C of rest(n) / n
//                        + sum over s > C of min over d of d x t(s, d) ]
//   longest  max over s of min over d of t(s, d)
//
// att, rest and t as in hdp_costs.h; d runs over the sample's degrees. Samples of at most C tokens
// run whole on one rank. (Charging a short sample alone with att(s) + rest(s) in the first would
// not be a bound: inside a full pack it takes less.)
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "batchloom/planning/hdp_costs.h"

namespace batchloom::planning {

/// A degree that is worth it: it takes less time than every smaller one.
struct DegreeChoice {
  std::uint32_t degree = 0;
  std::uint64_t time_ns = 0;  ///< Through the best links that so many ranks can have.

  friend bool operator==(const DegreeChoice&, const DegreeChoice&) = default;
};

/// A sample of more than a rank's capacity.
struct LongSample {
  std::uint32_t row = 0;  ///< In what was given.
  std::uint32_t tokens = 0;
  DegreeRange degrees;
  std::uint64_t attention_ns = 0;
  model::IndexRange choices = {};  ///< Of HdpProblem::choices, by ascending degree; not empty.
};

/// A sample that one rank can hold.
struct ShortSample {
  std::uint32_t row = 0;
  std::uint32_t tokens = 0;
  std::uint64_t attention_ns = 0;
};

struct HdpProblem {
  std::vector<LongSample> longs;    ///< By tokens, descending; then by row.
  std::vector<ShortSample> shorts;  ///< In the same order.
  std::vector<DegreeChoice> choices;
  std::uint64_t work_bound_ns = 0;
  std::uint64_t longest_bound_ns = 0;

  std::uint64_t lower_bound_ns() const { return std::max(work_bound_ns, longest_bound_ns); }
  /// From the sample's smallest degree to the fastest one.
  std::span<const DegreeChoice> choices_of(const LongSample& sample) const {
    return std::span(choices).subspan(sample.choices.begin, sample.choices.size());
  }
  /// The smallest degree on which the sample takes at most so long; nullptr where there is none.
  const DegreeChoice* within(const LongSample& sample, std::uint64_t time_ns) const;
};

/// Sorts and bounds. Linear time, but for the degrees: one step for each of each long sample's.
/// `invalid` for the first sample, by length, that fits on no number of ranks; the message names it
/// by `name(row)`.
Result<HdpProblem> make_problem(const HdpCosts& costs, std::span<const std::uint32_t> tokens,
                                const std::function<std::string(std::uint32_t)>& name);

/// Rows by tokens, descending; equal ones in order. Radix sort: linear time.
std::vector<std::uint32_t> rows_by_length(std::span<const std::uint32_t> tokens);

}  // namespace batchloom::planning
