// SPDX-License-Identifier: Apache-2.0
// What can go wrong between a client and an object store, and when: shared by FaultyStore and the
// simulator.
//
// A FaultPlan is a pure function from "the n-th call of an operation" to a fault or none. So a run
// can be repeated from its seed, and a shrinker can take single faults out
// (`FaultSettings::suppressed`) while all others stay.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "batchloom/base/runtime.h"
#include "batchloom/base/status.h"
#include "batchloom/objstore/operation.h"

namespace batchloom::objstore {

/// Behind each: the operations it applies to.
enum class Fault : std::uint8_t {
  kLostRequest,     ///< Never reaches the store; the caller cannot know. All.
  kLostReply,       ///< Takes effect, but the answer is lost. All.
  kLateApply,       ///< The caller hears nothing; the request takes effect later. Put, remove.
  kDoubleApply,     ///< Takes effect twice: resent by a client library or a proxy. Put, remove.
  kShortBody,       ///< The body ends early. Get.
  kWrongRange,      ///< Another stretch of the object than asked for. Get.
  kBitFlip,         ///< One bit of the body is wrong. Get.
  kConflict409,     ///< Another conditional put is under way: not applied. Put.
  kThrottled429,    ///< Refused before it took effect. All.
  kServerError503,  ///< Refused, for writes perhaps after it took effect. All.
  kErrorInsideOk,   ///< 200 with an error in the body. Put (applied or not), remove (by key).
};

inline constexpr std::array kAllFaults = {
    Fault::kLostRequest,  Fault::kLostReply,      Fault::kLateApply,    Fault::kDoubleApply,
    Fault::kShortBody,    Fault::kWrongRange,     Fault::kBitFlip,      Fault::kConflict409,
    Fault::kThrottled429, Fault::kServerError503, Fault::kErrorInsideOk};

/// Its place in an array with one element per fault.
constexpr std::size_t index_of(Fault fault) {
  return static_cast<std::size_t>(fault);
}

/// "lost_request", "lost_reply", ...
std::string_view to_string(Fault fault);

/// Whether a call of `operation` can meet `fault`.
bool applies_to(Fault fault, Operation operation);

/// The `ordinal`-th call of an operation, counted from 0 for each operation.
struct FaultCall {
  Operation operation = Operation::kGet;
  std::uint64_t ordinal = 0;
  friend auto operator<=>(const FaultCall&, const FaultCall&) = default;
};

/// How often `fault` meets a call of `operation`.
struct FaultRate {
  Fault fault = Fault::kLostRequest;
  Operation operation = Operation::kGet;
  double probability = 0;
};

/// `fault` meets exactly this call.
struct ScriptedFault {
  FaultCall call;
  Fault fault = Fault::kLostRequest;
};

struct FaultSettings {
  std::uint64_t seed = 0;
  std::vector<FaultRate> rates = {};
  std::vector<ScriptedFault> script = {};  ///< Wins over the rates.
  std::vector<FaultCall> suppressed = {};  ///< These calls meet no fault: wins over both.
  /// Late and double applies wait up to this long.
  Duration max_delay = std::chrono::milliseconds(100);
};

/// What happens to one call.
struct FaultDecision {
  Fault fault = Fault::kLostRequest;
  std::uint64_t salt = 0;  ///< Random bits for the details: which bit or key, applied or not.
  Duration delay{};        ///< For late and double applies; above 0.
};

/// Decides which calls meet which fault. Immutable; thread-safe.
class FaultPlan {
 public:
  /// No faults.
  FaultPlan() = default;

  /// `invalid` where a fault does not apply to its operation, a probability lies outside [0, 1],
  /// those of one operation add up to more than 1, or the delay is not above 0.
  static Result<FaultPlan> make(const FaultSettings& settings);

  /// The fault that `call` meets. The same answer each time it is asked.
  std::optional<FaultDecision> decide(const FaultCall& call) const;

 private:
  struct Band {
    Fault fault;
    std::uint64_t width;  ///< Of the 2^53 values of a draw, how many mean this fault.
  };
  Status add_rate(const FaultRate& rate);

  std::uint64_t seed_ = 0;
  Duration max_delay_{1};
  std::array<std::vector<Band>, kAllOperations.size()> bands_;
  std::map<FaultCall, std::optional<Fault>> scripted_;  ///< No fault: suppressed.
};

}  // namespace batchloom::objstore
