// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/mixture_config.h"

#include <fmt/format.h>

namespace batchloom::planning {
namespace {

Status check_mixture_source(std::size_t id, const MixtureSource& source) {
  if (source.exhausted == Exhausted::kError && source.records == 0) {
    return Status::invalid(fmt::format(
        "source {} has no records, and it is an error for it to be exhausted; leave it out", id));
  }
  if (source.exhausted != Exhausted::kRepeat && source.epochs != 0) {
    return Status::invalid(
        fmt::format("source {} is to make {} passes, and not to repeat; let it repeat, or give no "
                    "number of passes",
                    id, source.epochs));
  }
  return Status::ok();
}

}  // namespace

Status check_config(const MixtureConfig& config) {
  if (config.sources.empty() || config.sources.size() > kMaxSources) {
    return Status::invalid(
        fmt::format("a mixture of {} sources; it has 1 to {}", config.sources.size(), kMaxSources));
  }
  if (config.max_sample_tokens == 0 || config.max_sample_tokens > kMaxSampleTokens) {
    return Status::invalid(fmt::format("max_sample_tokens is {}; it is 1 to {}",
                                       config.max_sample_tokens, kMaxSampleTokens));
  }
  if (config.units_per_step == 0 || config.units_per_step > kMaxStepUnits) {
    return Status::invalid(fmt::format("a step of {} tokens or samples; it has 1 to {}",
                                       config.units_per_step, kMaxStepUnits));
  }
  if (config.unit == StepUnit::kTokens && config.units_per_step < config.max_sample_tokens) {
    return Status::invalid(
        fmt::format("a step takes {} tokens, a sample up to {}; max_sample_tokens must not be "
                    "larger than the step",
                    config.units_per_step, config.max_sample_tokens));
  }
  for (std::size_t id = 0; id < config.sources.size(); ++id) {
    BL_RETURN_IF_ERROR(check_mixture_source(id, config.sources[id]));
  }
  return Status::ok();
}

}  // namespace batchloom::planning
