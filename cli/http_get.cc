// SPDX-License-Identifier: Apache-2.0
// The only file that knows civetweb; the server of prometheus-cpp brings it along.
#include "cli/http_get.h"

#include <civetweb.h>
#include <fmt/format.h>

#include <array>
#include <memory>

namespace batchloom::cli {
namespace {

constexpr int kAnswerMs = 3'000;
constexpr std::size_t kBodyMax = std::size_t{64} << 20;

/// The library's state, which it counts.
class Library {
 public:
  Library() { mg_init_library(0); }
  ~Library() { mg_exit_library(); }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
};

using Connection = std::unique_ptr<mg_connection, decltype(&mg_close_connection)>;

/// As long as the answer says, or else until the server hangs up, which looks like an error here.
Result<std::string> read_body(mg_connection& connection, long long length) {
  std::string body;
  std::array<char, 16'384> part{};
  for (;;) {
    const int size = mg_read(&connection, part.data(), part.size());
    if (size <= 0) break;
    body.append(part.data(), static_cast<std::size_t>(size));
    if (body.size() > kBodyMax) return Status::corruption("the answer has no end");
  }
  if (length < 0 || body.size() == static_cast<std::size_t>(length)) return body;
  return Status::unavailable(
      fmt::format("the answer was cut off after {} of {} bytes", body.size(), length));
}

Result<std::string> ask(const HostPort& numeric, const HostPort& place, std::string_view path) {
  std::array<char, 256> why{};
  const Connection connection(
      mg_connect_client(numeric.host.c_str(), numeric.port, 0, why.data(), why.size()),
      &mg_close_connection);
  if (connection == nullptr) return Status::unavailable(why.data());
  const std::string request = fmt::format(
      "GET {} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", path, place.to_text());
  if (mg_write(connection.get(), request.data(), request.size()) <= 0) {
    return Status::unavailable("the connection was closed");
  }
  if (mg_get_response(connection.get(), why.data(), why.size(), kAnswerMs) < 0) {
    return Status::unavailable(
        fmt::format("no answer within {} s, or none in HTTP: {}", kAnswerMs / 1000, why.data()));
  }
  const mg_response_info* const answer = mg_get_response_info(connection.get());
  if (answer == nullptr) return Status::corruption("the answer is not HTTP");
  if (answer->status_code != 200) {
    return Status::corruption(fmt::format("it answers with status {}", answer->status_code));
  }
  return read_body(*connection, answer->content_length);
}

}  // namespace

Result<std::string> http_get(const HostPort& place, std::string_view path) {
  BL_ASSIGN_OR_RETURN(const HostPort numeric, resolve(place));
  const Library library;
  auto body = ask(numeric, place, path);
  if (body.is_ok()) return body;
  return body.status().with_context(fmt::format("http://{}{}", place.to_text(), path));
}

}  // namespace batchloom::cli
