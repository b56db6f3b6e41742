// SPDX-License-Identifier: Apache-2.0
#include "cli/host_port.h"

#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>

#include <cerrno>
#include <memory>
#include <optional>
#include <system_error>

#include "batchloom/base/quantity.h"
#include "batchloom/objstore/posix_fd.h"

namespace batchloom::cli {
namespace {

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

Result<Addresses> look_up(const HostPort& place, int flags) {
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* found = nullptr;
  const std::string port = std::to_string(place.port);
  const int error = getaddrinfo(place.host.c_str(), port.c_str(), &hints, &found);
  const std::string why =
      error == EAI_SYSTEM ? std::generic_category().message(errno) : gai_strerror(error);
  if (error != 0) return Status::invalid(fmt::format("host '{}': {}", place.host, why));
  return Addresses(found, &freeaddrinfo);
}

std::string_view hint_of(int error) {
  switch (error) {
    case EADDRINUSE: return "; choose another port, or 0 for any that is free";
    case EACCES: return "; ports below 1024 are for root, choose a higher one";
    case EADDRNOTAVAIL: return "; it is no address of this host";
    default: return "";
  }
}

}  // namespace

std::string HostPort::to_text() const {
  return fmt::format("{}:{}", host, port);
}

Result<HostPort> parse_host_port(std::string_view what, std::string_view text) {
  const auto refuse = [&] {
    return Status::invalid(fmt::format(
        "{}: '{}' is no HOST:PORT of IPv4, as 127.0.0.1:9464 or localhost:9464", what, text));
  };
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return refuse();
  const std::string_view host = text.substr(0, colon);
  const std::optional<std::uint64_t> port = parse_number(text.substr(colon + 1));
  constexpr std::string_view kNeverInHosts = ":[]/ \t\n";
  const bool is_host = !host.empty() && host.find_first_of(kNeverInHosts) == std::string::npos &&
                       host.find('\0') == std::string::npos;
  if (!is_host || !port || *port > UINT16_MAX) return refuse();
  return HostPort{.host = std::string(host), .port = static_cast<std::uint16_t>(*port)};
}

Result<HostPort> resolve(const HostPort& place) {
  BL_ASSIGN_OR_RETURN(const Addresses found, look_up(place, 0));
  char host[NI_MAXHOST] = {};
  if (getnameinfo(found->ai_addr, found->ai_addrlen, host, sizeof(host), nullptr, 0,
                  NI_NUMERICHOST) != 0) {
    return Status::invalid(fmt::format("host '{}' has no address", place.host));
  }
  return HostPort{.host = host, .port = place.port};
}

Status check_listen(const HostPort& place) {
  BL_ASSIGN_OR_RETURN(const Addresses found, look_up(place, AI_NUMERICHOST | AI_PASSIVE));
  const objstore::Fd fd(socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int yes = 1;
  // As the server does it: a run that ended just now does not keep the next one from the port.
  const bool may =
      fd.is_open() && setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) == 0 &&
      bind(fd.get(), found->ai_addr, found->ai_addrlen) == 0 && listen(fd.get(), 1) == 0;
  if (may) return Status::ok();
  const int error = errno;
  return Status::invalid(fmt::format("cannot listen at {}: {}{}", place.to_text(),
                                     std::generic_category().message(error), hint_of(error)));
}

}  // namespace batchloom::cli
