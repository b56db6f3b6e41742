// SPDX-License-Identifier: Apache-2.0
#include "batchloom/client/prefetcher.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "batchloom/base/log.h"
#include "batchloom/store/backoff.h"

namespace batchloom::client {
namespace {

/// An answer that came after its call had given up is good for so long: the stream may be reopened.
constexpr std::chrono::seconds kAnswerKept{10};

Status over() {
  return Status::cancelled("reading goes on elsewhere");
}

}  // namespace

Prefetcher::Prefetcher(HeadFeed& feed, StepFetcher& fetcher, const PrefetchOptions& options,
                       Step start)
    : feed_(feed),
      runtime_(feed.stream().runtime()),
      fetcher_(fetcher),
      options_(options),
      stalls_(feed.stream().counters().counter("client_stalls")),
      stall_ns_(feed.stream().counters().counter("client_stall_ns")),
      wanted_(runtime_.make_event()),
      produced_(runtime_.make_event()),
      ready_changed_(runtime_.make_event()),
      position_(start),
      reader_(runtime_.spawn("prefetcher", [this](const std::stop_token&) { read_loop(); })) {
  if (options_.views_ahead == 0) return;
  viewer_ =
      runtime_.spawn("viewer", [this](const std::stop_token& stopped) { view_loop(stopped); });
}

Prefetcher::~Prefetcher() {
  stop();
}

std::uint64_t Prefetcher::held_bytes() const {
  const MutexLock lock(mutex_);
  return held_bytes_;
}

Result<StepPtr> Prefetcher::next(const CallOptions& call) {
  taken_view_.reset();
  BL_RETURN_IF_ERROR(runtime_.check(call));
  const Time began = runtime_.now();
  const bool stall_goes_on = std::exchange(stall_goes_on_, false);
  if (std::optional<Result<StepPtr>> answer = take(began)) return *std::move(answer);
  const bool committed = !awaited_commit();
  Result<StepPtr> answer = wait_for_step(call);
  if (!committed) return answer;
  if (!stall_goes_on) stalls_.add();
  stall_ns_.add(static_cast<std::uint64_t>((runtime_.now() - began).count()));
  stall_goes_on_ = answer.is(ErrorKind::kUnavailable);
  return answer;
}

std::optional<Result<StepPtr>> Prefetcher::take(const std::optional<Time>& began) {
  std::optional<Result<StepPtr>> answer;
  {
    const MutexLock lock(mutex_);
    if (stopped_) {
      answer = Status::cancelled("the consumer was closed");
    } else if (!ready_.empty()) {
      held_bytes_ -= ready_.front().frees_bytes;
      position_ = ready_.front().step->step + 1;
      answer = std::move(ready_.front().step);
      taken_view_ = std::move(ready_.front().view);
      ready_.pop_front();
    } else if (!failed_.is_ok()) {
      answer = failed_;
    } else if (ended_look_ == looks_ &&
               (!began || (look_given_up_ && *began - ended_at_ <= kAnswerKept))) {
      answer = StepPtr();
      look_given_up_ = false;
    } else {
      // Where the call before gave up on the answer, this one waits for the same.
      if (began && ended_look_ == looks_) {
        ++looks_;
        look_given_up_ = false;
      }
      produced_->reset();
    }
    // With the answer: the thread must not take what was handed out for still awaited.
    awaited_ = !answer.has_value();
  }
  wanted_->set();  // There is room, or somebody waits.
  ready_changed_->set();
  return answer;
}

Result<StepPtr> Prefetcher::wait_for_step(const CallOptions& call) {
  for (;;) {
    const Status waited = produced_->wait(call);
    if (std::optional<Result<StepPtr>> answer = take(std::nullopt)) return *std::move(answer);
    if (waited.is_ok()) continue;
    stop_waiting();
    return gave_up(waited);
  }
}

void Prefetcher::stop_waiting() {
  const MutexLock lock(mutex_);
  awaited_ = false;
  look_given_up_ = true;
}

std::optional<Step> Prefetcher::awaited_commit() const {
  Step step;
  {
    const MutexLock lock(mutex_);
    if (!ready_.empty()) return std::nullopt;
    step = fetcher_.after_skipped(position_);
  }
  const store::HeadPtr head = feed_.seen();
  if (head != nullptr && head->head.next_step > step) return std::nullopt;
  return step;
}

Status Prefetcher::gave_up(const Status& ended) const {
  Step step;
  Status trouble;
  {
    const MutexLock lock(mutex_);
    step = fetcher_.after_skipped(position_);
    trouble = trouble_;
  }
  const store::HeadPtr head = feed_.seen();
  std::string what = fmt::format("step {} was not read yet", step.value);
  if (head != nullptr && head->head.next_step <= step) {
    what =
        fmt::format("step {} is not committed yet: the newest head seen, {}, ends before step {}",
                    step.value, store::manifest_key(head->head.slot), head->head.next_step.value);
  }
  if (!trouble.is_ok()) return store::gave_up(what, ended, trouble);
  return ended.with_context(what);
}

void Prefetcher::seek(Step step) {
  std::stop_source before;
  std::deque<Ready> dropped;
  {
    const MutexLock lock(mutex_);
    if (stopped_) return;
    ++round_;
    std::swap(before, round_stop_);
    position_ = step;
    ready_.swap(dropped);
    held_bytes_ = 0;
    failed_ = Status::ok();
    trouble_ = Status::ok();
    look_given_up_ = false;
  }
  stall_goes_on_ = false;
  before.request_stop();
  wanted_->set();
}

void Prefetcher::stop() {
  std::stop_source round_stop;
  {
    const MutexLock lock(mutex_);
    stopped_ = true;
    round_stop = round_stop_;
  }
  round_stop.request_stop();
  wanted_->set();
  produced_->set();
  reader_->join();
  if (viewer_ == nullptr) return;
  viewer_->request_stop();
  viewer_->join();
}

StepPtr Prefetcher::next_without_view() {
  const MutexLock lock(mutex_);
  const std::size_t ahead = std::min(options_.views_ahead, ready_.size());
  for (std::size_t i = 0; i < ahead; ++i) {
    if (!std::exchange(ready_[i].view_tried, true)) return ready_[i].step;
  }
  ready_changed_->reset();
  return nullptr;
}

void Prefetcher::view_loop(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    const StepPtr step = next_without_view();
    if (step == nullptr) {
      if (!ready_changed_->wait({.deadline = kNever, .stop = stop}).is_ok()) return;
      continue;
    }
    // A step that trainers cannot take is refused by whoever asks for its arrays.
    Result<TrainerView> view = view_for_trainer(step, *options_.buffers);
    if (!view.is_ok()) continue;
    const MutexLock lock(mutex_);
    const auto place = std::ranges::find(ready_, step, &Ready::step);
    if (place != ready_.end()) place->view = *std::move(view);
  }
}

void Prefetcher::read_loop() {
  while (const std::optional<Round> round = begin_round()) settle(*round, read_from(*round));
}

std::optional<Prefetcher::Round> Prefetcher::begin_round() {
  for (;;) {
    {
      const MutexLock lock(mutex_);
      if (stopped_) return std::nullopt;
      if (rounds_begun_ != round_) {
        rounds_begun_ = round_;
        return Round{.number = round_, .start = position_, .stop = round_stop_.get_token()};
      }
      wanted_->reset();
    }
    if (!wanted_->wait({}).is_ok()) return std::nullopt;
  }
}

Status Prefetcher::read_from(const Round& round) {
  for (Step step = round.start;;) {
    step = fetcher_.after_skipped(step);
    BL_RETURN_IF_ERROR(wait_for_room(round, 0));
    BL_ASSIGN_OR_RETURN(const store::HeadPtr head, head_with(step, round));
    BL_ASSIGN_OR_RETURN(const StepRead read, persist(round, [&](const CallOptions& call) {
                          return fetcher_.prepare(head->head, step, call);
                        }));
    BL_RETURN_IF_ERROR(wait_for_room(round, read.size_bytes));
    BL_ASSIGN_OR_RETURN(FetchedSteps fetched, persist(round, read.fetch));
    step = publish(round, read.size_bytes, std::move(fetched));
  }
}

bool Prefetcher::is_over(const Round& round) const {
  return stopped_ || round.number != round_;
}

bool Prefetcher::has_room(std::uint64_t bytes) const {
  if (awaited_ && ready_.empty()) return true;
  return held_bytes_ < options_.budget_bytes && bytes <= options_.budget_bytes - held_bytes_;
}

Status Prefetcher::wait_for_room(const Round& round, std::uint64_t bytes) {
  for (;;) {
    {
      const MutexLock lock(mutex_);
      if (is_over(round)) return over();
      if (has_room(bytes)) {
        held_bytes_ += bytes;
        return Status::ok();
      }
      wanted_->reset();
    }
    BL_RETURN_IF_ERROR(wanted_->wait({.deadline = kNever, .stop = round.stop}));
  }
}

Result<store::HeadPtr> Prefetcher::head_with(Step step, const Round& round) {
  for (store::HeadPtr head = feed_.seen();;) {
    if (head != nullptr && head->head.next_step > step) return head;
    if (head == nullptr || !head->head.ended) {
      BL_ASSIGN_OR_RETURN(head, persist(round, [&](const CallOptions& call) {
                            return feed_.wait_for_step(step, call);
                          }));
      continue;
    }
    BL_ASSIGN_OR_RETURN(const std::uint64_t look, wait_for_look(round));
    BL_ASSIGN_OR_RETURN(
        head, persist(round, [&](const CallOptions& call) { return feed_.refresh(call); }));
    if (head->head.ended && head->head.next_step <= step) answer_end(round, look);
  }
}

Result<std::uint64_t> Prefetcher::wait_for_look(const Round& round) {
  for (;;) {
    {
      const MutexLock lock(mutex_);
      if (is_over(round)) return over();
      if (awaited_ && ended_look_ != looks_) return looks_;
      wanted_->reset();
    }
    BL_RETURN_IF_ERROR(wanted_->wait({.deadline = kNever, .stop = round.stop}));
  }
}

void Prefetcher::answer_end(const Round& round, std::uint64_t look) {
  const Time now = runtime_.now();
  {
    const MutexLock lock(mutex_);
    if (!is_over(round)) {
      ended_look_ = look;
      ended_at_ = now;
    }
  }
  produced_->set();
}

Step Prefetcher::publish(const Round& round, std::uint64_t reserved_bytes, FetchedSteps fetched) {
  const Step end = fetched.steps.back()->step + 1;
  {
    const MutexLock lock(mutex_);
    if (is_over(round)) return end;
    held_bytes_ += fetched.held_bytes - reserved_bytes;
    for (StepPtr& step : fetched.steps) ready_.push_back({.step = std::move(step)});
    ready_.back().frees_bytes = fetched.held_bytes;
  }
  produced_->set();
  ready_changed_->set();
  return end;
}

void Prefetcher::settle(const Round& round, const Status& ended) {
  {
    const MutexLock lock(mutex_);
    if (is_over(round)) return;
    failed_ = ended;
  }
  produced_->set();
}

template <class Attempt>
auto Prefetcher::persist(const Round& round, const Attempt& attempt)
    -> decltype(attempt(CallOptions())) {
  const CallOptions call{.deadline = kNever, .stop = round.stop};
  store::Backoff backoff(runtime_);
  for (bool first = true;; first = false) {
    auto result = attempt(call);
    if (!first && result.is_ok()) forget_trouble(round);
    if (result.is_ok() || !store::is_transient(result.status())) return result;
    note_trouble(round, result.status());
    BL_RETURN_IF_ERROR(backoff.wait(call));
  }
}

void Prefetcher::forget_trouble(const Round& round) {
  const MutexLock lock(mutex_);
  if (!is_over(round)) trouble_ = Status::ok();
}

void Prefetcher::note_trouble(const Round& round, const Status& trouble) {
  {
    const MutexLock lock(mutex_);
    if (is_over(round)) return;
    const Status before = std::exchange(trouble_, trouble);
    if (!before.is_ok()) return;
  }
  log_warning(fmt::format("reading ahead fails and will be repeated: {}", trouble.to_string()));
}

}  // namespace batchloom::client
