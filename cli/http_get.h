// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "batchloom/base/status.h"
#include "cli/host_port.h"

namespace batchloom::cli {

/// What a server at `place` answers to a GET of `path`: the body. Blocks, at most some seconds.
/// `invalid` where there is no such host; `unavailable` where nobody listens, or nothing comes in
/// time; `corruption` where the answer is not HTTP, not 200, or larger than 64 MiB.
Result<std::string> http_get(const HostPort& place, std::string_view path);

}  // namespace batchloom::cli
