// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>
#include <utility>

#include "batchloom/objstore/object_store.h"

namespace batchloom::store {

/// Damage may lie on the way and not in the store: a read that does not decode is repeated, so many
/// times in all.
inline constexpr int kDecodeAttempts = 3;

/// Gets a whole object and decodes it: nullopt where the key does not exist, `decode`'s error where
/// the bytes are damaged in every attempt.
template <class Decode>
auto read_object(objstore::ObjectStore& objects, std::string_view key, const CallOptions& call,
                 Decode decode)
    -> Result<std::optional<std::remove_cvref_t<
        decltype(decode(std::declval<const objstore::ObjectData&>()).value())>>> {
  using Value =
      std::remove_cvref_t<decltype(decode(std::declval<const objstore::ObjectData&>()).value())>;
  for (int attempt = 1;; ++attempt) {
    BL_ASSIGN_OR_RETURN(const std::optional<objstore::ObjectData> data, objects.get(key, {}, call));
    if (!data) return std::optional<Value>();
    Result<Value> value = decode(*data);
    if (value.is_ok()) return std::optional<Value>(std::move(value).value());
    if (attempt == kDecodeAttempts) return value.status();
  }
}

}  // namespace batchloom::store
