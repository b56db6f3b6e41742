// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/loader_outlook.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "batchloom/construction/token_span.h"
#include "batchloom/control/step_demand.h"

namespace batchloom::control {
namespace {

constexpr std::uint64_t kOrderSamples = SourceProfile::kFirstSamples / SourceProfile::kFirstOrders;

/// Records that are looked at for one that has tokens: others may be empty, or of another split.
constexpr std::uint64_t kRecordsLookedAt = 32;

/// Makes orders of samples from all over a source.
class OrderMaker {
 public:
  OrderMaker(planning::Metadata& metadata, std::uint32_t max_sample_tokens)
      : metadata_(metadata), max_sample_tokens_(max_sample_tokens) {}

  /// Other samples in each round; without any where the source has none to give.
  Result<FetchOrder> make(model::SourceId source, std::uint64_t round) {
    FetchOrder order{.step = {}, .source = source, .samples = {}};
    const std::uint64_t records = metadata_.sources()[source.value].records;
    const std::uint64_t wanted = std::min(records, SourceProfile::kFirstSamples);
    for (std::uint64_t turn = 0; turn < kOrderSamples; ++turn) {
      // Not one after another: where records have several samples, an order is full before the end.
      const std::uint64_t i = round + SourceProfile::kFirstOrders * (turn * 7 % kOrderSamples);
      if (i >= wanted) continue;
      const std::uint64_t begin = records / wanted * i;
      const std::uint64_t end = std::min(records / wanted * (i + 1), begin + kRecordsLookedAt);
      BL_RETURN_IF_ERROR(add_record(model::RecordIndex(begin), end, order));
      if (order.samples.size() >= kOrderSamples) break;
    }
    return order;
  }

 private:
  /// The first record from `record` on, and below `end`, that has tokens: its parts.
  Status add_record(model::RecordIndex record, std::uint64_t end, FetchOrder& order) {
    std::uint32_t tokens = 0;
    for (; record.value < end; ++record) {
      BL_ASSIGN_OR_RETURN(tokens, metadata_.tokens(order.source, record));
      if (tokens > 0) break;
    }
    std::uint32_t part = 0;
    for (std::uint32_t first = 0; first < tokens && order.samples.size() < kOrderSamples;) {
      const std::uint32_t of_part = std::min(tokens - first, max_sample_tokens_);
      const model::SampleId id{order.source, model::Epoch(0), record, model::PartIndex(part++)};
      BL_ASSIGN_OR_RETURN(
          model::SampleMeta sample,
          metadata_.describe({.id = id, .tokens = of_part, .first_position = first}));
      order.samples.push_back(std::move(sample));
      first += of_part;
    }
    return Status::ok();
  }

  planning::Metadata& metadata_;
  const std::uint32_t max_sample_tokens_;
};

}  // namespace

PartitionLimits loader_limits(const PipelineConfig& config, std::uint32_t cores) {
  return {.cores = cores,
          .memory_bytes = std::max<std::uint64_t>(config.limits.memory_bytes / 2, 1)};
}

BlockWidths widths_of(const PipelineConfig& config) {
  const auto width = construction::token_width_for(config.tokens.vocab);
  return {.token_bytes = static_cast<std::uint32_t>(store::token_bytes(width)),
          .patch_bytes = has_pictures(config) ? config.image.rules.patch_bytes() : 0};
}

Result<std::vector<SampleCost>> measure_sources(Runtime& runtime, planning::Metadata& metadata,
                                                SampleFetcher& fetcher,
                                                const MeasureOptions& options,
                                                const CallOptions& call) {
  const auto sources = static_cast<std::uint32_t>(metadata.sources().size());
  SourceProfile profile(sources);
  ProfiledFetcher profiled(runtime, fetcher, profile, options.thread_times);
  OrderMaker orders(metadata, options.max_sample_tokens);
  const CallOptions until{.deadline = std::min(call.deadline, runtime.now() + options.at_most),
                          .stop = call.stop};
  for (std::uint64_t round = 0; round < SourceProfile::kFirstOrders; ++round) {
    for (std::uint32_t source = 0; source < sources; ++source) {
      BL_RETURN_IF_ERROR(runtime.check(call));
      if (!runtime.check(until).is_ok()) return profile.costs();
      const Result<FetchOrder> order = orders.make(model::SourceId(source), round);
      if (!order.is_ok() || order->samples.empty()) continue;
      FetchPlace place;
      // What cannot be read is the run's to tell, by its own limits of bad records and of time.
      (void)profiled.fetch(*order, place, until);
    }
  }
  return profile.costs();
}

Result<LoaderOutlook> foresee_loaders(const planning::MixSpec& mix,
                                      const planning::Metadata& metadata,
                                      std::vector<SampleCost> costs, const PartitionLimits& limits,
                                      std::uint64_t steps) {
  const auto samples =
      samples_expected(mix_of_records(mix, metadata), costs, {}, {.first = {}, .count = steps});
  LoaderOutlook outlook;
  outlook.demands = demands_of(samples, costs);
  outlook.costs = std::move(costs);
  auto made = partition(outlook.demands, limits, {});
  if (!made.is_ok()) {
    const auto largest = std::ranges::max_element(outlook.demands, {}, [](const SourceDemand& one) {
      return one.samples > 0 ? one.bytes : 0;
    });
    const auto source = static_cast<std::size_t>(largest - outlook.demands.begin());
    return made.status().with_context(fmt::format("source '{}'", mix.sources[source].name));
  }
  outlook.partition = *std::move(made);
  return outlook;
}

}  // namespace batchloom::control
