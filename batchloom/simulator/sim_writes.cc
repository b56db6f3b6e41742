// SPDX-License-Identifier: Apache-2.0
// What a SimClient changes in the bucket.
#include <fmt/format.h>

#include "batchloom/base/hash.h"
#include "batchloom/simulator/sim_client.h"

namespace batchloom::simulator {

using objstore::FaultDecision;
using objstore::Operation;
using objstore::PutOutcome;
using objstore::PutReply;
using FaultKind = objstore::Fault;

namespace {

// Longest delay of a late request, as a power of two, in picks of the world.
constexpr std::uint64_t kLateBits = 12;

// What becomes of a write.
struct Fate {
  bool now = true;       // It takes effect before the reply,
  bool later = false;    // and (again) long after.
  bool heard = true;     // The reply says what happened;
  bool refused = false;  // or, that nothing did.
};

Fate fate_of(const std::optional<FaultDecision>& fault) {
  if (!fault) return {};
  const bool either = fault->salt % 2 == 0;
  switch (fault->fault) {
    case FaultKind::kLostRequest: return {.now = false, .heard = false};
    case FaultKind::kLostReply: return {.heard = false};
    case FaultKind::kLateApply: return {.now = false, .later = true, .heard = false};
    case FaultKind::kDoubleApply: return {.later = true};
    case FaultKind::kConflict409:
    case FaultKind::kThrottled429: return {.now = false, .refused = true};
    case FaultKind::kServerError503:
      return either ? Fate{.now = false, .refused = true} : Fate{.heard = false};
    case FaultKind::kErrorInsideOk: return {.now = either, .heard = false};
    default: return {};
  }
}

Status refusal(std::string_view what, FaultKind fault) {
  const std::string text = fmt::format("{}: injected {}", what, to_string(fault));
  return fault == FaultKind::kConflict409 ? Status::conflict(text) : Status::unavailable(text);
}

}  // namespace

void SimClient::apply_late(const FaultDecision& fault, std::function<void()> effect) {
  const std::uint64_t points = std::uint64_t{1} << (fault.salt % kLateBits);
  world_.post_later(points + fault.salt / kLateBits % points, std::move(effect));
}

Result<PutReply> SimClient::put(std::string_view key, std::span<const ByteSpan> parts,
                                const objstore::PutCondition& condition, const CallOptions& call) {
  BL_RETURN_IF_ERROR(process_.check(call));
  const auto fault = store_.next_fault(Operation::kPut);
  const Fate fate = fate_of(fault);
  if (fault) store_.count(fault->fault);
  objstore::MemoryObject object = objstore::make_memory_object(objstore::concatenate(parts));
  store_.trace(Operation::kPut, key, xxh3_64(as_bytes(object.etag.value)));

  const std::shared_ptr<Event> replied = process_.make_event();
  const auto reply =
      std::make_shared<PutReply>(PutReply{PutOutcome::kUnknown, {}, "the reply was lost"});
  const auto effect = [this, name = std::string(key), object, condition] {
    return store_.apply_put(name, object, condition);
  };
  world_.post([this, fate, effect, reply, replied] {
    if (fate.now) {
      PutReply applied = effect();
      if (fate.heard) *reply = std::move(applied);
    }
    world_.post([replied] { replied->set(); });
  });
  if (fate.later) apply_late(*fault, [effect] { static_cast<void>(effect()); });

  const Status awaited = replied->wait(call);
  if (process_.crashed()) return awaited;
  if (fate.refused) return refusal(fmt::format("put {}", key), fault->fault);
  // Whoever stops waiting does not know what became of the request.
  if (!awaited.is_ok()) return PutReply{PutOutcome::kUnknown, {}, awaited.to_string()};
  return *reply;
}

Result<std::vector<Status>> SimClient::remove(std::span<const std::string> keys,
                                              const CallOptions& call) {
  BL_RETURN_IF_ERROR(process_.check(call));
  const auto fault = store_.next_fault(Operation::kRemove);
  Fate fate = fate_of(fault);
  const bool partial = fault && fault->fault == FaultKind::kErrorInsideOk;
  if (partial) fate = {};
  if (fault) store_.count(fault->fault);

  // Each key takes effect by itself, and the answer comes after the last one.
  const std::shared_ptr<Event> replied = process_.make_event();
  const auto unanswered = std::make_shared<std::size_t>(1);
  const auto answer_one = [this, replied, unanswered] {
    if (--*unanswered == 0) world_.post([replied] { replied->set(); });
  };
  std::vector<Status> replies(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    store_.trace(Operation::kRemove, keys[i], ~std::uint64_t{0});
    if (partial && (fault->salt >> (i % 64)) % 2 == 0) {
      replies[i] = Status::unavailable("injected error_inside_ok");
      continue;
    }
    const auto effect = [store = &store_, key = keys[i]] { store->apply_remove(key); };
    if (fate.later) apply_late(*fault, effect);
    if (!fate.now) continue;
    ++*unanswered;
    world_.post([effect, answer_one] {
      effect();
      answer_one();
    });
  }
  world_.post(answer_one);
  BL_RETURN_IF_ERROR(replied->wait(call));
  if (fate.refused || !fate.heard) return refusal("remove", fault->fault);
  return replies;
}

}  // namespace batchloom::simulator
