// SPDX-License-Identifier: Apache-2.0
// One ranged request for a part of a batch object, and what to do about a bad answer. Included by
// the readers' sources only.
#pragma once

#include <memory>
#include <utility>

#include "batchloom/store/batch_layout.h"
#include "batchloom/store/head.h"
#include "batchloom/store/read_buffers.h"
#include "batchloom/store/stream.h"

namespace batchloom::store {

/// Damage may lie on the way and not in the store: so many requests in all.
inline constexpr int kRangeAttempts = 2;

/// What `entry` says of its object. `key` is its key, and must outlive the result. `corruption`
/// where no object can be so.
Result<BatchContext> describe_object(const Stream& stream, const Entry& entry,
                                     std::string_view key);

/// The bytes of `range`, exactly. `corruption` where the object is missing, is not as large as its
/// entry says, or where the answer is short. One request, and a second one where the store refuses
/// the range, to learn why. The bytes are of `buffers` where there are any.
Result<std::shared_ptr<const Bytes>> get_range(const Stream& stream, const BatchContext& object,
                                               Slice range, const CallOptions& call,
                                               ReadBuffers* buffers = nullptr);

/// Gets `range` and decodes it: `decode`'s value, or its error where that is the same again. Counts
/// repeated requests as `store_batch_rereads`.
template <class Decode>
auto read_range(const Stream& stream, const BatchContext& object, Slice range,
                const CallOptions& call, Decode decode, ReadBuffers* buffers = nullptr)
    -> decltype(decode(std::declval<std::shared_ptr<const Bytes>>())) {
  for (int attempt = 1;; ++attempt) {
    auto bytes = get_range(stream, object, range, call, buffers);
    if (!bytes.is_ok() && !bytes.is(ErrorKind::kCorruption)) return bytes.status();
    if (bytes.is_ok()) {
      auto value = decode(*std::move(bytes));
      if (value.is_ok() || attempt == kRangeAttempts) return value;
    } else if (attempt == kRangeAttempts) {
      return bytes.status();
    }
    stream.counters().counter("store_batch_rereads").add();
  }
}

}  // namespace batchloom::store
