// SPDX-License-Identifier: Apache-2.0
// The requests an object store answers, as wrappers count and disturb them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace batchloom::objstore {

/// One kind of request. A listing is one kList for every page.
enum class Operation : std::uint8_t { kGet, kHead, kPut, kList, kRemove };

inline constexpr std::array kAllOperations = {Operation::kGet, Operation::kHead, Operation::kPut,
                                              Operation::kList, Operation::kRemove};

/// Its place in an array with one element per operation.
constexpr std::size_t index_of(Operation operation) {
  return static_cast<std::size_t>(operation);
}

/// "get", "head", "put", "list", "remove".
std::string_view to_string(Operation operation);

}  // namespace batchloom::objstore
