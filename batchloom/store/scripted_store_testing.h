// SPDX-License-Identifier: Apache-2.0
// A store that answers as a test scripts it, and that lets other actors act at exact points.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <string>
#include <string_view>
#include <vector>

#include "batchloom/objstore/object_store.h"
#include "batchloom/objstore/operation.h"

namespace batchloom::store {

/// How a request is answered.
enum class Answer : std::uint8_t {
  kPass,
  kLostRequest,  ///< Without effect; a put is kUnknown, all others `unavailable`.
  kLostReply,    ///< Takes effect; a put is kUnknown, all others `unavailable`.
  kConflict,     ///< Without effect: `conflict`, as a 409.
  kUnavailable,  ///< Without effect.
  kForbidden,    ///< Without effect: `invalid`.
  kDiskFull,     ///< Without effect: `exhausted`.
  kDamaged,  ///< Of a get: one wrong bit in its middle. Of a remove: its first key is said to fail.
};

/// What happens to the next request that fits.
struct ScriptLine {
  objstore::Operation operation = objstore::Operation::kGet;
  std::string prefix = {};  ///< The request's key begins so.
  Answer answer = Answer::kPass;
  std::size_t times = 1;  ///< So many requests that fit.
  /// Run around the request, each time. They may use the store that lies below.
  std::function<void()> before = {};
  std::function<void()> after = {};
};

/// A request that was made.
struct Request {
  objstore::Operation operation = objstore::Operation::kGet;
  std::string key;            ///< The prefix of a listing, the first key of a remove.
  std::uint64_t content = 0;  ///< A hash of what a put offers.
  friend bool operator==(const Request&, const Request&) = default;
};

/// Passes requests on to another store as the script says, and records them. One thread at a time.
class ScriptedStore final : public objstore::ObjectStore {
 public:
  explicit ScriptedStore(objstore::ObjectStore& inner) : inner_(inner) {}

  /// Lines are tried in the order given; a request uses up one turn of the first that fits.
  void next(ScriptLine line) { script_.push_back(std::move(line)); }
  /// Runs before every request with its number among all recorded ones; before the script.
  void before_each(std::function<void(std::size_t)> hook) { before_each_ = std::move(hook); }
  /// The request of that number is answered so, unless a line fits it.
  void answer_request(std::size_t number, Answer answer) {
    answered_number_ = number;
    answer_to_number_ = answer;
  }
  /// True where every line has been used up.
  bool script_is_done() const { return script_.empty(); }
  void forget_script() { script_.clear(); }

  const std::vector<Request>& requests() const { return requests_; }
  std::size_t count(objstore::Operation operation, std::string_view prefix = {}) const;
  void forget_requests() { requests_.clear(); }

  Result<std::optional<objstore::ObjectData>> get(std::string_view key, objstore::ByteRange range,
                                                  const CallOptions& call) override;
  Result<std::optional<objstore::ObjectInfo>> head(std::string_view key,
                                                   const CallOptions& call) override;
  Result<objstore::PutReply> put(std::string_view key, std::span<const ByteSpan> parts,
                                 const objstore::PutCondition& condition,
                                 const CallOptions& call) override;
  Result<std::unique_ptr<objstore::Listing>> list(std::string_view prefix,
                                                  std::string_view start_after,
                                                  const CallOptions& call) override;
  Result<std::vector<Status>> remove(std::span<const std::string> keys,
                                     const CallOptions& call) override;
  objstore::Capabilities capabilities() const override { return capabilities_; }
  void set_capabilities(objstore::Capabilities capabilities) { capabilities_ = capabilities; }

 private:
  ScriptLine take_line(const Request& request);
  // Runs `request` amid the line's hooks, or answers in its place.
  template <class T>
  Result<T> play(const Request& request, const std::function<Result<T>()>& pass);

  objstore::ObjectStore& inner_;
  objstore::Capabilities capabilities_{.conditional_create = true, .conditional_replace = true};
  std::list<ScriptLine> script_;
  std::vector<Request> requests_;
  std::function<void(std::size_t)> before_each_;
  std::size_t answered_number_ = SIZE_MAX;
  Answer answer_to_number_ = Answer::kPass;
};

}  // namespace batchloom::store
