// SPDX-License-Identifier: Apache-2.0
// A queue between threads that is bounded in bytes.
//
// How it works:
// 1. An item is queued while the costs of the queued items sum to at most the bound. An item that
//    is larger than the whole bound is let through when the queue is empty.
// 2. Who must wait stands in line with an Event of its own, and whoever makes room or brings an
//    item serves the line from its front: senders get in strictly in the order they came (a large
//    item is not overtaken for ever by small ones), and receivers are served in the order they
//    came.
// 3. A place in line is given up or served under the mutex, never both; the Event only says
//    "look".
//
// Invariants: receivers wait only while nothing is queued and no sender waits; senders wait only
// while something is queued; the mutex is not held during a call into the Runtime or an Event.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "batchloom/base/mutex.h"
#include "batchloom/base/runtime.h"

namespace batchloom {

/// A first-in first-out queue of T for many senders and many receivers. Thread-safe.
template <class T>
class Channel {
 public:
  /// Queues at most `bound_bytes`, counted by the costs that senders name. `runtime` outlives it.
  Channel(Runtime& runtime, std::uint64_t bound_bytes)
      : runtime_(runtime), bound_bytes_(bound_bytes) {}
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  /// Queues `item`, waiting for room. Ok: it will be received unless receivers stop asking.
  /// `cancelled`: the channel is closed or the stop token was triggered; `unavailable`: the
  /// deadline passed. With an error the item was not queued and is gone.
  Status send(T item, std::uint64_t cost_bytes, const CallOptions& call);

  /// The oldest item, waiting for one; nothing once the channel is closed and drained. `cancelled`
  /// and `unavailable` by `call`; then nothing was taken out.
  Result<std::optional<T>> receive(const CallOptions& call);

  /// No item gets in from now on: waiting senders end with `cancelled`. What is queued can still be
  /// received. Idempotent; does not block.
  void close();

  /// The cost of what is queued now.
  std::uint64_t queued_bytes() const {
    const MutexLock lock(mutex_);
    return queued_bytes_;
  }

 private:
  struct Item {
    T value;
    std::uint64_t cost_bytes;
  };
  enum class Outcome { kWaiting, kServed, kClosed };
  // Shared with whoever serves the line: the owner of the place may have seen its outcome and left
  // (its deadline passed) before the Event is set.
  using Wake = std::shared_ptr<Event>;
  struct Sender {
    Item item;
    Wake wake;
    Outcome outcome = Outcome::kWaiting;
  };
  struct Receiver {
    std::optional<T> value;
    Wake wake;
    Outcome outcome = Outcome::kWaiting;
  };

  /// How a call stands after a look at the queue, and whom it has served by that.
  struct Turn {
    Outcome outcome;
    std::vector<Wake> served;
  };

  Turn offer(Sender& sender);      ///< Hands the item over, queues it, or gets in line.
  Turn take(Receiver& receiver);   ///< Takes an item, or gets in line.
  Turn leave(Sender& sender);      ///< Gives up the place in line unless it was served.
  Turn leave(Receiver& receiver);  ///< The same for a receiver.

  bool fits(std::uint64_t cost_bytes) const BL_REQUIRES(mutex_);
  void push(Item item) BL_REQUIRES(mutex_);
  T pop() BL_REQUIRES(mutex_);
  std::vector<Wake> admit_senders() BL_REQUIRES(mutex_);
  static Outcome wake_served(const Turn& turn);

  Runtime& runtime_;
  const std::uint64_t bound_bytes_;
  mutable Mutex mutex_;
  std::deque<Item> items_ BL_GUARDED_BY(mutex_);
  std::uint64_t queued_bytes_ BL_GUARDED_BY(mutex_) = 0;
  std::deque<Sender*> senders_ BL_GUARDED_BY(mutex_);
  std::deque<Receiver*> receivers_ BL_GUARDED_BY(mutex_);
  bool closed_ BL_GUARDED_BY(mutex_) = false;
};

template <class T>
Status Channel<T>::send(T item, std::uint64_t cost_bytes, const CallOptions& call) {
  BL_RETURN_IF_ERROR(runtime_.check(call));
  Sender sender{{std::move(item), cost_bytes}, runtime_.make_event()};
  Outcome outcome = wake_served(offer(sender));
  if (outcome == Outcome::kWaiting) {
    const Status waited = sender.wake->wait(call);
    outcome = wake_served(leave(sender));
    if (outcome == Outcome::kWaiting) return waited;
  }
  return outcome == Outcome::kServed ? Status::ok() : Status::cancelled("the channel is closed");
}

template <class T>
Result<std::optional<T>> Channel<T>::receive(const CallOptions& call) {
  BL_RETURN_IF_ERROR(runtime_.check(call));
  Receiver receiver{std::nullopt, runtime_.make_event()};
  if (wake_served(take(receiver)) == Outcome::kWaiting) {
    const Status waited = receiver.wake->wait(call);
    if (wake_served(leave(receiver)) == Outcome::kWaiting) return waited;
  }
  return std::move(receiver.value);
}

template <class T>
void Channel<T>::close() {
  std::vector<Wake> wakes;
  {
    const MutexLock lock(mutex_);
    closed_ = true;
    for (Sender* sender : senders_) {
      sender->outcome = Outcome::kClosed;
      wakes.push_back(sender->wake);
    }
    for (Receiver* receiver : receivers_) {
      receiver->outcome = Outcome::kClosed;
      wakes.push_back(receiver->wake);
    }
    senders_.clear();
    receivers_.clear();
  }
  for (const Wake& wake : wakes) wake->set();
}

template <class T>
auto Channel<T>::offer(Sender& sender) -> Turn {
  const MutexLock lock(mutex_);
  if (closed_) return {Outcome::kClosed, {}};
  if (!receivers_.empty()) {
    Receiver& receiver = *receivers_.front();
    receivers_.pop_front();
    receiver.value.emplace(std::move(sender.item.value));
    receiver.outcome = Outcome::kServed;
    return {Outcome::kServed, {receiver.wake}};
  }
  if (senders_.empty() && fits(sender.item.cost_bytes)) {
    push(std::move(sender.item));
    return {Outcome::kServed, {}};
  }
  senders_.push_back(&sender);
  return {Outcome::kWaiting, {}};
}

template <class T>
auto Channel<T>::take(Receiver& receiver) -> Turn {
  const MutexLock lock(mutex_);
  if (!items_.empty()) {
    receiver.value.emplace(pop());
    return {Outcome::kServed, admit_senders()};
  }
  if (closed_) return {Outcome::kClosed, {}};
  receivers_.push_back(&receiver);
  return {Outcome::kWaiting, {}};
}

template <class T>
auto Channel<T>::leave(Sender& sender) -> Turn {
  const MutexLock lock(mutex_);
  if (sender.outcome != Outcome::kWaiting) return {sender.outcome, {}};
  std::erase(senders_, &sender);
  return {Outcome::kWaiting, admit_senders()};  // Those behind may be smaller.
}

template <class T>
auto Channel<T>::leave(Receiver& receiver) -> Turn {
  const MutexLock lock(mutex_);
  if (receiver.outcome == Outcome::kWaiting) std::erase(receivers_, &receiver);
  return {receiver.outcome, {}};
}

template <class T>
auto Channel<T>::wake_served(const Turn& turn) -> Outcome {
  for (const Wake& wake : turn.served) wake->set();
  return turn.outcome;
}

template <class T>
bool Channel<T>::fits(std::uint64_t cost_bytes) const {
  return items_.empty() ||
         (queued_bytes_ <= bound_bytes_ && cost_bytes <= bound_bytes_ - queued_bytes_);
}

template <class T>
void Channel<T>::push(Item item) {
  queued_bytes_ += item.cost_bytes;
  items_.push_back(std::move(item));
}

template <class T>
T Channel<T>::pop() {
  T value = std::move(items_.front().value);
  queued_bytes_ -= items_.front().cost_bytes;
  items_.pop_front();
  return value;
}

template <class T>
auto Channel<T>::admit_senders() -> std::vector<Wake> {
  std::vector<Wake> admitted;
  while (!senders_.empty() && fits(senders_.front()->item.cost_bytes)) {
    Sender& sender = *senders_.front();
    senders_.pop_front();
    push(std::move(sender.item));
    sender.outcome = Outcome::kServed;
    admitted.push_back(sender.wake);
  }
  return admitted;
}

}  // namespace batchloom
