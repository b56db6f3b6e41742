// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "batchloom/store/stream.h"

namespace batchloom::store {

/// Calls `visit` for every key with the prefix, in no order. Errors: those of the store, after
/// which some keys may have been visited.
Status for_each_key(const Stream& stream, std::string_view prefix, const CallOptions& call,
                    const std::function<void(const std::string&)>& visit);

}  // namespace batchloom::store
