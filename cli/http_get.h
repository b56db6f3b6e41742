// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "batchloom/base/runtime.h"
#include "batchloom/base/status.h"
#include "cli/host_port.h"

namespace batchloom::cli {

/// Of one call: whoever answers may be slow, or anybody.
struct HttpBounds {
  /// From connecting to the answer's last byte.
  Duration at_most = std::chrono::seconds(3);
  /// Of the answer, with its head. A run's metrics are some hundred bytes for each source.
  std::uint64_t bytes_max = std::uint64_t{64} << 20;
};

/// What a server at `place` answers to a GET of `path`: the body. Blocks while the host's name is
/// resolved, and then for `at_most`, however slowly bytes come. Errors name the address, what came
/// and the bound: `invalid` where there is no such host; `unavailable` where nobody listens, the
/// answer does not end in time, or it is cut off; `corruption` where it is not HTTP, not 200, or
/// longer than `bytes_max`.
Result<std::string> http_get(const HostPort& place, std::string_view path,
                             const HttpBounds& bounds = {});

}  // namespace batchloom::cli
