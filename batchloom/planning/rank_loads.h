// SPDX-License-Identifier: Apache-2.0
// Short samples on ranks: which rank holds which, and when each rank ends.
//
// A rank runs its gangs and then its short samples, packed first-fit in descending length, each
// pack at most the capacity.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "batchloom/planning/hdp_problem.h"
#include "batchloom/planning/rank_items.h"

namespace batchloom::planning {

/// One thread at a time. Samples are named by their place in HdpProblem::shorts.
class RankLoads {
 public:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  /// Both outlive it. `begin_ns`: by rank, when its packs may begin.
  RankLoads(const HdpCosts& costs, std::span<const ShortSample> shorts,
            std::vector<std::uint64_t> begin_ns);

  /// All samples, by descending length, each to the rank that would end first.
  void spread();

  std::uint32_t ranks() const { return static_cast<std::uint32_t>(begin_ns_.size()); }
  std::uint64_t begin_ns(std::uint32_t rank) const { return begin_ns_[rank]; }
  std::uint64_t end_ns(std::uint32_t rank) const { return end_ns_[rank]; }
  std::uint64_t makespan_ns() const;

  /// A sample of one rank against one of another, or against none.
  struct Exchange {
    std::uint32_t give = kNone;
    std::uint32_t take = kNone;
    std::uint64_t from_end_ns = 0;  ///< When the two would end.
    std::uint64_t to_end_ns = 0;
  };
  /// The exchange that brings the later of both ends lowest, among those whose work is closest to
  /// `goal_ns`; nullopt where none ends before `from` does now.
  std::optional<Exchange> find_exchange(std::uint32_t from, std::uint32_t to,
                                        std::uint64_t goal_ns) const;
  /// A sample of `from` against one that is slightly shorter, wherever that lies, so that both
  /// ranks end by the target. Precondition: `from` ends after it.
  struct Trade {
    std::uint32_t to = kNone;
    Exchange exchange;
  };
  std::optional<Trade> find_trade(std::uint32_t from, std::uint64_t target_ns) const;
  Exchange evaluate(std::uint32_t from, std::uint32_t to, std::uint32_t give,
                    std::uint32_t take) const;
  /// The rank's samples, by descending length. Valid until the next apply().
  std::span<const std::uint32_t> items_of(std::uint32_t rank) const { return items_.of(rank); }
  void apply(std::uint32_t from, std::uint32_t to, const Exchange& exchange);

  /// Calls visit(samples, tokens) for each pack of the rank, in the order in which it runs them.
  template <class Visit>
  void for_each_pack(std::uint32_t rank, Visit visit) const;

 private:
  using Items = std::span<const std::uint32_t>;

  /// What the sample adds to a rank's work in packs of the best size.
  std::uint64_t work_ns(std::uint32_t item) const {
    return shorts_[item].attention_ns + shorts_[item].tokens * costs_.least_rest_per_token() / 1024;
  }
  /// First-fit: which of bins_ each lies in, and how many tokens those hold.
  void pack_items(Items items) const;
  /// When the rank would end without one of its samples and with another.
  std::uint64_t end_with(std::uint32_t rank, std::uint32_t without, std::uint32_t with) const;
  void move(std::uint32_t item, std::uint32_t from, std::uint32_t to);

  const HdpCosts& costs_;
  const std::span<const ShortSample> shorts_;
  std::vector<std::uint64_t> begin_ns_;  // By rank.
  std::vector<std::uint64_t> end_ns_;
  std::vector<std::uint32_t> rank_of_;  // By item.
  RankItems items_;
  mutable std::vector<std::uint32_t> bins_, bin_of_, pack_;
};

template <class Visit>
void RankLoads::for_each_pack(std::uint32_t rank, Visit visit) const {
  const Items items = items_of(rank);
  pack_items(items);
  for (std::uint32_t bin = 0; bin < bins_.size(); ++bin) {
    pack_.clear();
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (bin_of_[i] == bin) pack_.push_back(items[i]);
    }
    visit(Items(pack_), bins_[bin]);
  }
}

}  // namespace batchloom::planning
