// SPDX-License-Identifier: Apache-2.0
// How a promise of the ObjectStore interface is checked against a real store: by the start-up probe
// (probe.h) and by the conformance suite (conformance_testing.h).
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "batchloom/objstore/object_store.h"

namespace batchloom::objstore {

/// One run of one check: the store, a place in it, and what was found wrong. The calls below note a
/// failure where the store errs or does not answer as wanted, so that a check reads as the list of
/// what must hold. One thread at a time. All can block.
class CheckRun {
 public:
  /// All keys lie under `prefix` (which ends with '/'). `store` and `runtime` outlive it.
  CheckRun(ObjectStore& store, Runtime& runtime, std::string prefix, CallOptions call);

  ObjectStore& store() { return store_; }
  Runtime& runtime() { return runtime_; }
  const CallOptions& call() const { return call_; }

  /// Ends with '/'.
  const std::string& prefix() const { return prefix_; }
  /// The full key of an object called `name`; remembered for remove_all().
  std::string key(std::string_view name);
  std::vector<std::string> keys(std::initializer_list<std::string_view> names);

  void fail(std::string what);
  void expect(bool holds, std::string_view what_is_wrong);
  /// The check has no meaning here, because `why`.
  void skip(std::string why) { skipped_ = std::move(why); }

  /// Puts and wants `wanted`. The object's tag, if it was applied.
  std::optional<Etag> put(const std::string& key, ByteSpan bytes, const PutCondition& condition,
                          PutOutcome wanted = PutOutcome::kApplied);
  /// The object; nullopt also after an error.
  std::optional<ObjectData> get(const std::string& key, ByteRange range = {});
  /// Wants exactly `bytes` at `key`.
  void expect_content(const std::string& key, ByteSpan bytes);
  /// Wants no object at `key`.
  void expect_missing(const std::string& key);
  /// All pages of a listing, as key to size. Wants no key twice.
  std::map<std::string, std::uint64_t> list(std::string_view prefix,
                                            std::string_view start_after = {});
  /// Wants `list` to show exactly `keys`.
  void expect_list(std::string_view prefix, std::string_view start_after,
                   const std::set<std::string>& keys);
  /// Wants all keys gone.
  void remove(const std::vector<std::string>& keys);

  /// Removes what the run may have left behind, within `call`; the keys that would not go.
  std::vector<std::string> remove_all(const CallOptions& call);

  /// Notes the error of a call: an interruption if it says nothing about the store, else a failure.
  void note_error(const Status& error);

  const std::vector<std::string>& failures() const { return failures_; }
  const std::optional<std::string>& skipped() const { return skipped_; }
  /// Ok, or the first error that kept the check from being finished: `unavailable`, `cancelled` or
  /// `exhausted`.
  const Status& interruption() const { return interruption_; }

 private:
  ObjectStore& store_;
  Runtime& runtime_;
  const std::string prefix_;
  const CallOptions call_;
  std::set<std::string> keys_;
  std::vector<std::string> failures_;
  std::optional<std::string> skipped_;
  Status interruption_;
};

/// A promise of the interface and how it is checked.
struct StoreCheck {
  std::string name;  ///< In the manner of "create_twice".
  std::function<void(CheckRun&)> run;
};

/// "applied", "condition_failed", "unknown".
std::string_view to_string(PutOutcome outcome);

/// `size_bytes` bytes without a pattern; a different start gives different bytes at every place.
Bytes random_bytes(std::size_t size_bytes, std::uint64_t seed);

}  // namespace batchloom::objstore
