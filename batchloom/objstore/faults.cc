// SPDX-License-Identifier: Apache-2.0
#include "batchloom/objstore/faults.h"

#include <fmt/format.h>

#include "batchloom/base/check.h"
#include "batchloom/base/hash.h"

namespace batchloom::objstore {
namespace {

/// A draw has 53 bits, so that a probability becomes a whole number of its values.
constexpr int kDrawBits = 53;
constexpr std::uint64_t kDraws = std::uint64_t{1} << kDrawBits;

Status does_not_apply(Fault fault, Operation operation) {
  return Status::invalid(fmt::format("fault '{}' does not apply to '{}'; see Fault in faults.h",
                                     to_string(fault), to_string(operation)));
}

}  // namespace

std::string_view to_string(Fault fault) {
  switch (fault) {
    case Fault::kLostRequest: return "lost_request";
    case Fault::kLostReply: return "lost_reply";
    case Fault::kLateApply: return "late_apply";
    case Fault::kDoubleApply: return "double_apply";
    case Fault::kShortBody: return "short_body";
    case Fault::kWrongRange: return "wrong_range";
    case Fault::kBitFlip: return "bit_flip";
    case Fault::kConflict409: return "conflict_409";
    case Fault::kThrottled429: return "throttled_429";
    case Fault::kServerError503: return "server_error_503";
    case Fault::kErrorInsideOk: return "error_inside_ok";
  }
  BL_CHECK(false, "not a fault");
}

bool applies_to(Fault fault, Operation operation) {
  switch (fault) {
    case Fault::kLostRequest:
    case Fault::kLostReply:
    case Fault::kThrottled429:
    case Fault::kServerError503: return true;
    case Fault::kLateApply:
    case Fault::kDoubleApply:
    case Fault::kErrorInsideOk:
      return operation == Operation::kPut || operation == Operation::kRemove;
    case Fault::kShortBody:
    case Fault::kWrongRange:
    case Fault::kBitFlip: return operation == Operation::kGet;
    case Fault::kConflict409: return operation == Operation::kPut;
  }
  BL_CHECK(false, "not a fault");
}

Result<FaultPlan> FaultPlan::make(const FaultSettings& settings) {
  if (settings.max_delay <= Duration::zero()) {
    return Status::invalid("fault plan: max_delay must be above 0");
  }
  FaultPlan plan;
  plan.seed_ = settings.seed;
  plan.max_delay_ = settings.max_delay;
  for (const FaultRate& rate : settings.rates) BL_RETURN_IF_ERROR(plan.add_rate(rate));
  for (const ScriptedFault& scripted : settings.script) {
    if (!applies_to(scripted.fault, scripted.call.operation)) {
      return does_not_apply(scripted.fault, scripted.call.operation);
    }
    plan.scripted_.insert_or_assign(scripted.call, scripted.fault);
  }
  for (const FaultCall& call : settings.suppressed) {
    plan.scripted_.insert_or_assign(call, std::nullopt);
  }
  return plan;
}

Status FaultPlan::add_rate(const FaultRate& rate) {
  if (!applies_to(rate.fault, rate.operation)) return does_not_apply(rate.fault, rate.operation);
  if (!(rate.probability >= 0 && rate.probability <= 1)) {
    return Status::invalid(fmt::format("fault '{}' on '{}': probability {} is outside [0, 1]",
                                       to_string(rate.fault), to_string(rate.operation),
                                       rate.probability));
  }
  auto& bands = bands_[index_of(rate.operation)];
  bands.push_back(
      {.fault = rate.fault,
       .width = static_cast<std::uint64_t>(rate.probability * static_cast<double>(kDraws))});
  std::uint64_t total = 0;
  for (const Band& band : bands) total += band.width;
  if (total > kDraws) {
    return Status::invalid(
        fmt::format("probabilities of faults on '{}' add up to more than 1; a call meets one fault",
                    to_string(rate.operation)));
  }
  return Status::ok();
}

std::optional<FaultDecision> FaultPlan::decide(const FaultCall& call) const {
  const std::uint64_t stream = mix64(seed_ ^ mix64(index_of(call.operation) + 1));
  const std::uint64_t bits = mix64(stream + call.ordinal);
  const auto decision = [&](Fault fault) {
    const auto span = static_cast<std::uint64_t>(max_delay_.count());
    return FaultDecision{.fault = fault,
                         .salt = mix64(bits + 1),
                         .delay = Duration(static_cast<Duration::rep>(1 + mix64(bits + 2) % span))};
  };
  if (const auto found = scripted_.find(call); found != scripted_.end()) {
    if (!found->second) return std::nullopt;
    return decision(*found->second);
  }
  std::uint64_t draw = bits >> (64 - kDrawBits);
  for (const Band& band : bands_[index_of(call.operation)]) {
    if (draw < band.width) return decision(band.fault);
    draw -= band.width;
  }
  return std::nullopt;
}

}  // namespace batchloom::objstore
