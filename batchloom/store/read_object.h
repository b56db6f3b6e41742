// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string_view>
#include <utility>

#include "batchloom/objstore/object_store.h"
#include "batchloom/store/damage.h"

namespace batchloom::store {

/// Damage may lie on the way and not in the store: a read that does not decode is repeated, so many
/// times in all.
inline constexpr int kDecodeAttempts = 3;

/// What is to be read whole. Whatever else lies at the key, no more than `max_bytes` of it are
/// read.
struct WholeObject {
  std::string_view key;
  std::uint64_t max_bytes = 0;  ///< None of its kind is larger.
};

/// FORMAT, the floor, pins and live cursors are far smaller.
inline constexpr std::uint64_t kSmallObjectMaxBytes = std::uint64_t{16} << 10;

inline Status too_large(const WholeObject& object, const objstore::ObjectData& data) {
  return corrupt_at(object.key, object.max_bytes,
                    fmt::format("too long: it has {} bytes, at most {} are possible",
                                data.object_size_bytes, object.max_bytes));
}

/// Gets a whole object and decodes it: nullopt where the key does not exist, `decode`'s error where
/// the bytes are damaged in every attempt, `corruption` where they are too many.
template <class Decode>
auto read_object(objstore::ObjectStore& objects, const WholeObject& object, const CallOptions& call,
                 Decode decode)
    -> Result<std::optional<std::remove_cvref_t<
        decltype(decode(std::declval<const objstore::ObjectData&>()).value())>>> {
  using Value =
      std::remove_cvref_t<decltype(decode(std::declval<const objstore::ObjectData&>()).value())>;
  for (int attempt = 1;; ++attempt) {
    BL_ASSIGN_OR_RETURN(const std::optional<objstore::ObjectData> data,
                        objects.get(object.key, {.length = object.max_bytes}, call));
    if (!data) return std::optional<Value>();
    if (data->object_size_bytes > object.max_bytes) return too_large(object, *data);
    Result<Value> value = decode(*data);
    if (value.is_ok()) return std::optional<Value>(std::move(value).value());
    if (attempt == kDecodeAttempts) return value.status();
  }
}

}  // namespace batchloom::store
