// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/step_loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <system_error>
#include <utility>

#include "batchloom/base/log.h"
#include "batchloom/store/backoff.h"

namespace batchloom::control {
namespace {

/// What a sample takes beside its tokens: its rows in a block and in the plan.
constexpr std::uint64_t kSampleRowBytes = 256;

/// Orders that a thread looks at before it takes the oldest one: it does so under a lock.
constexpr std::size_t kOrdersLookedAt = 256;

/// Threads that each lane that binds has left; may be below 0.
class LaneRoom {
 public:
  LaneRoom(const LoaderLanes& lanes, std::span<const OrderOutPtr> out)
      : lanes_(lanes), left_(lanes.threads.begin(), lanes.threads.end()) {
    for (std::size_t lane = 0; lane < left_.size(); ++lane) {
      if (!lanes.binds[lane]) left_[lane] = INT64_MAX;
    }
    for (const OrderOutPtr& one : out) --left_of(one->order.source);
  }

  bool has(model::SourceId source) { return left_of(source) > 0; }

 private:
  std::int64_t& left_of(model::SourceId source) {
    const std::size_t number = source.value;
    return number < lanes_.of_source.size() ? left_[lanes_.of_source[number]] : unlimited_;
  }

  const LoaderLanes& lanes_;
  std::vector<std::int64_t> left_;
  std::int64_t unlimited_ = INT64_MAX;
};

template <class State>
bool has_waiting(const State& state) {
  return std::ranges::any_of(state.steps, [](const auto& step) { return step->waiting > 0; });
}

}  // namespace

std::uint64_t loaded_bytes(const model::SampleMeta& sample, const BlockWidths& widths) {
  std::uint64_t bytes = kSampleRowBytes + std::uint64_t{sample.tokens} * widths.token_bytes;
  for (const std::uint32_t patches : sample.image_patches) {
    bytes += std::uint64_t{patches} * widths.patch_bytes;
  }
  return bytes;
}

StepLoader::StepLoader(Runtime& runtime, SampleFetcher& fetcher, const StepLoaderOptions& options)
    : runtime_(runtime),
      fetcher_(fetcher),
      options_(options),
      slow_(options.slow),
      state_(runtime, State()) {
  resize(options.workers, {});
}

StepLoader::~StepLoader() {
  for (const Thread& thread : threads_) thread.task->request_stop();
  threads_.clear();  // Joins them.
}

void StepLoader::resize(std::uint32_t workers, LoaderLanes lanes) {
  std::uint32_t more = 0;
  state_.change([&](State& state) {
    state.wanted = std::max(workers, 1U);
    state.lanes = std::move(lanes);
    more = state.wanted - std::min(state.wanted, state.live);
    state.live += more;
  });
  spawn_threads(more);
  join_ended();
}

std::uint32_t StepLoader::workers() const {
  return state_.read([](const State& state) { return state.wanted; });
}

void StepLoader::spawn_threads(std::uint32_t count) {
  try {
    for (; count > 0; --count) {
      const std::uint64_t number = threads_made_++;
      threads_.push_back({number, runtime_.spawn(fmt::format("loader-{}", number),
                                                 [this, number](const std::stop_token& stop) {
                                                   work(number, stop);
                                                 })});
    }
  } catch (const std::system_error& error) {
    if (threads_.empty()) throw;
    state_.change([&](State& state) { state.live -= count; });
    log_warning(
        fmt::format("{} more threads of loaders cannot be made; it goes on with those that "
                    "there are: {}",
                    count, error.what()));
  }
}

void StepLoader::join_ended() {
  std::vector<std::uint64_t> ended;
  state_.change([&](State& state) { ended.swap(state.ended); });
  std::erase_if(threads_, [&](const Thread& thread) {
    return std::ranges::find(ended, thread.number) != ended.end();
  });
}

std::uint64_t StepLoader::bytes_of(const planning::PlannedStep& step) const {
  std::uint64_t bytes = 0;
  for (const model::SampleMeta& sample : step.members) {
    bytes += loaded_bytes(sample, options_.widths);
  }
  return bytes;
}

bool StepLoader::has_room(const planning::PlannedStep& step) const {
  const std::uint64_t bytes = bytes_of(step);
  return state_.read([&](const State& state) {
    return state.steps.empty() ||
           (state.bytes <= options_.bytes_max && bytes <= options_.bytes_max - state.bytes);
  });
}

std::vector<FetchOrder> StepLoader::orders_of(const planning::PlannedStep& step) const {
  std::vector<const model::SampleMeta*> members;
  for (const model::SampleMeta& member : step.members) members.push_back(&member);
  std::ranges::stable_sort(members, {}, [](const auto* member) { return member->id.source; });
  std::vector<FetchOrder> orders;
  std::uint64_t bytes = 0;
  for (const model::SampleMeta* member : members) {
    const std::uint64_t more = loaded_bytes(*member, options_.widths);
    if (orders.empty() || orders.back().source != member->id.source ||
        bytes + more > options_.order_bytes) {
      orders.push_back({.step = step.step, .source = member->id.source, .samples = {}});
      bytes = 0;
    }
    orders.back().samples.push_back(*member);
    bytes += more;
  }
  std::ranges::reverse(orders);  // They are taken from the end.
  return orders;
}

void StepLoader::submit(planning::PlannedStep step) {
  const auto pending = std::make_shared<PendingStep>(std::move(step));
  pending->bytes = bytes_of(pending->loaded.planned);
  pending->orders = orders_of(pending->loaded.planned);
  pending->waiting = pending->open = pending->orders.size();
  state_.change([&](State& state) {
    state.bytes += pending->bytes;
    state.steps.push_back(pending);
  });
}

bool StepLoader::empty() const {
  return steps() == 0;
}

std::size_t StepLoader::steps() const {
  return state_.read([](const State& state) { return state.steps.size(); });
}

std::uint64_t StepLoader::bytes() const {
  return state_.read([](const State& state) { return state.bytes; });
}

std::optional<model::SourceId> StepLoader::held_up_by() const {
  return state_.read([](const State& state) { return held_up_by(state); });
}

std::optional<model::SourceId> StepLoader::held_up_by(const State& state) {
  if (state.steps.empty() || state.steps.front()->open == 0) return std::nullopt;
  const PendingStep& step = *state.steps.front();
  return step.out.empty() ? step.orders.back().source : step.out.front()->order.source;
}

std::vector<SourceLoad> StepLoader::loads() const {
  const Time now = runtime_.now();
  return state_.read([&](const State& state) { return state.loads.look(held_up_by(state), now); });
}

Status StepLoader::wait_for_oldest(const CallOptions& call) {
  const Time begin = runtime_.now();
  state_.note([&](State& state) { state.loads.begin_wait(begin); });
  Status come = watch_oldest(call);
  const Time end = runtime_.now();
  state_.note([&](State& state) { state.loads.end_wait(held_up_by(state), end); });
  return come;
}

Status StepLoader::watch_oldest(const CallOptions& call) {
  const auto has_come = [](const State& state) { return state.steps.front()->open == 0; };
  for (;;) {
    const Time look_at = std::min(call.deadline, runtime_.now() + slow_.look_every());
    Status come = state_.wait_until(has_come, {.deadline = look_at, .stop = call.stop});
    const Time now = runtime_.now();
    if (!come.is(ErrorKind::kUnavailable) || now >= call.deadline) return come;
    const auto out = state_.read([](const State& state) { return state.out; });
    BL_RETURN_IF_ERROR(slow_.look(out, now));
  }
}

Result<LoadedStep> StepLoader::next(const CallOptions& call) {
  BL_RETURN_IF_ERROR(wait_for_oldest(call));
  const PendingPtr step = state_.read([](const State& state) { return state.steps.front(); });
  if (!step->failed.is_ok()) {
    return step->failed.with_context(
        fmt::format("loading step {}", step->loaded.planned.step.value));
  }
  state_.change([&](State& state) {
    state.steps.erase(state.steps.begin());
    state.bytes -= step->bytes;
  });
  std::ranges::sort(step->loaded.bad, {}, &BadSample::sample);
  return std::move(step->loaded);
}

void StepLoader::clear() {
  state_.change([](State& state) {
    for (const PendingPtr& step : state.steps) step->waiting = 0;
    state.steps.clear();
    state.bytes = 0;
  });
}

void StepLoader::work(std::uint64_t number, const std::stop_token& stop) {
  const CallOptions call{.deadline = kNever, .stop = stop};
  for (;;) {
    const Result<std::optional<Turn>> turn = next_order(number, call);
    if (!turn.is_ok() || !*turn) return;
    bring(**turn, call);
  }
}

void StepLoader::bring(const Turn& turn, const CallOptions& call) {
  const Time begin = runtime_.now();
  Result<Fetched> fetched = fetch(*turn.out, call);
  const Time end = runtime_.now();
  const bool has_block = fetched.is_ok() && fetched->block != nullptr;
  const std::uint64_t bytes = has_block ? fetched->block->size_bytes() : 0;
  state_.change([&](State& state) {
    state.loads.brought(turn.out->order.source, bytes, end - begin);
    if (!state.steps.empty() && state.steps.front() == turn.step) {
      state.loads.charge(held_up_by(state), end);
    }
    deliver(turn, std::move(fetched), state);
  });
}

Result<Fetched> StepLoader::fetch(OrderOut& out, const CallOptions& call) {
  store::Backoff backoff(runtime_);
  for (std::uint32_t attempt = 1;; ++attempt) {
    Result<Fetched> fetched = fetcher_.fetch(out.order, out.place, call);
    if (!fetched.is(ErrorKind::kUnavailable)) return fetched;
    if (attempt >= options_.attempts) {
      return fetched.status().with_context(
          fmt::format("{}, tried {} times", slow_.describe(out), attempt));
    }
    BL_RETURN_IF_ERROR(backoff.wait(call));
  }
}

Result<std::optional<StepLoader::Turn>> StepLoader::next_order(std::uint64_t number,
                                                               const CallOptions& call) {
  const auto may_go_on = [](const State& state) {
    return state.live > state.wanted || has_waiting(state);
  };
  for (;;) {
    BL_RETURN_IF_ERROR(state_.wait_until(may_go_on, call));
    std::optional<Turn> turn;
    bool goes = false;
    state_.change([&](State& state) {
      goes = state.live > state.wanted;
      if (goes) {
        --state.live;
        state.ended.push_back(number);
      } else {
        turn = take_order(state);  // None where another thread was quicker.
      }
    });
    if (turn || goes) return turn;
  }
}

std::optional<StepLoader::Turn> StepLoader::take_order(State& state) {
  const auto first =
      std::ranges::find_if(state.steps, [](const PendingPtr& step) { return step->waiting > 0; });
  if (first == state.steps.end()) return std::nullopt;
  auto found = first;
  auto order = (*found)->orders.end() - 1;
  if (first != state.steps.begin() && !state.lanes.threads.empty()) {
    LaneRoom room(state.lanes, state.out);
    std::size_t looks = 0;
    for (auto step = first; step != state.steps.end() && looks < kOrdersLookedAt; ++step) {
      auto& orders = (*step)->orders;
      const auto free = std::find_if(orders.rbegin(), orders.rend(), [&](const FetchOrder& one) {
        return ++looks > kOrdersLookedAt || room.has(one.source);
      });
      if (free == orders.rend() || looks > kOrdersLookedAt) continue;
      found = step;
      order = free.base() - 1;
      break;
    }
  }
  PendingStep& step = **found;
  const auto out = std::make_shared<OrderOut>();
  out->order = std::move(*order);
  step.orders.erase(order);
  --step.waiting;
  step.out.push_back(out);
  state.out.push_back(out);
  return Turn{.step = *found, .out = out};
}

void StepLoader::deliver(const Turn& turn, Result<Fetched> fetched, State& state) {
  PendingStep& step = *turn.step;
  std::erase(step.out, turn.out);
  std::erase(state.out, turn.out);
  --step.open;
  if (!fetched.is_ok()) {
    if (step.failed.is_ok()) step.failed = fetched.status();
    return;
  }
  if (fetched->block != nullptr) step.loaded.blocks.push_back(std::move(fetched->block));
  for (BadSample& bad : fetched->bad) step.loaded.bad.push_back(std::move(bad));
}

}  // namespace batchloom::control
