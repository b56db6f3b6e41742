// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "batchloom/base/status.h"

namespace batchloom::cli {

/// Where something listens, as it was given. Of IPv4: the server's library, as distributions build
/// it, knows nothing else.
struct HostPort {
  std::string host;  ///< A name or an address; never empty.
  std::uint16_t port = 0;

  /// "127.0.0.1:9464".
  std::string to_text() const;

  friend bool operator==(const HostPort&, const HostPort&) = default;
};

/// "127.0.0.1:9464", "localhost:0". `invalid`, naming `what`, for all else.
Result<HostPort> parse_host_port(std::string_view what, std::string_view text);

/// The first of its addresses, as numbers; the port stays. Blocks for as long as resolving takes.
/// `invalid` where there is no such host, or none of IPv4.
Result<HostPort> resolve(const HostPort& place);

/// Whether somebody may listen there. `invalid`, saying why, where the address is not of this host,
/// or the port is another's or not allowed. Precondition: `place` is of resolve().
Status check_listen(const HostPort& place);

}  // namespace batchloom::cli
