// SPDX-License-Identifier: Apache-2.0
// The only file that knows libcurl. It counts all that comes itself: the library's own bounds are
// one for a file's size, where that is told before, and others for single lines of a head.
#include "cli/http_get.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>

#include "batchloom/base/quantity.h"

namespace batchloom::cli {
namespace {

/// The library's state, which it counts. Nothing of it is for TLS.
class Library {
 public:
  Library() { curl_global_init(CURL_GLOBAL_NOTHING); }
  ~Library() { curl_global_cleanup(); }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
};

using Handle = std::unique_ptr<CURL, decltype(&curl_easy_cleanup)>;
using Headers = std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)>;

/// Of an answer's head: what the library takes differs from version to version.
constexpr std::uint64_t kHeadMax = std::uint64_t{64} << 10;

/// What has come so far.
struct Reply {
  std::uint64_t bytes_max = 0;
  std::uint64_t bytes = 0;  ///< Of head and body.
  bool has_head = false;    ///< To its end.
  std::string body = {};

  std::uint64_t most() const { return has_head ? bytes_max : std::min(bytes_max, kHeadMax); }
  bool is_too_long() const { return bytes > most(); }
};

/// Of both callbacks: whatever is not the size given ends the transfer.
constexpr std::size_t kRefused = 0;

/// Line by line.
std::size_t take_head(const char* line, std::size_t, std::size_t size, void* to) {
  Reply& reply = *static_cast<Reply*>(to);
  reply.bytes += size;
  const std::string_view text(line, size);
  if (text == "\r\n" || text == "\n") reply.has_head = true;
  return reply.is_too_long() ? kRefused : size;
}

std::size_t take_body(const char* part, std::size_t, std::size_t size, void* to) {
  Reply& reply = *static_cast<Reply*>(to);
  reply.bytes += size;
  if (reply.is_too_long()) return kRefused;
  reply.body.append(part, size);
  return size;
}

Status error_of(CURLcode code, std::string_view why, const Reply& reply, const HttpBounds& bounds) {
  if (reply.is_too_long()) {
    return Status::corruption(fmt::format("its {} is longer than {}: {} bytes came",
                                          reply.has_head ? "answer" : "answer's head",
                                          bytes_text(reply.most()), reply.bytes));
  }
  const std::string came = fmt::format("{}; {} bytes came", why, reply.bytes);
  switch (code) {
    case CURLE_OPERATION_TIMEDOUT:
      return Status::unavailable(fmt::format("no whole answer within {:g} s: {} bytes came",
                                             std::chrono::duration<double>(bounds.at_most).count(),
                                             reply.bytes));
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_BAD_CONTENT_ENCODING: return Status::corruption("the answer is not HTTP: " + came);
    // The library has a bound of its own for a line of a head, and says only this.
    case CURLE_OUT_OF_MEMORY: return Status::corruption("a line of its head has no end: " + came);
    case CURLE_PARTIAL_FILE: return Status::unavailable("the answer was cut off: " + came);
    default: return Status::unavailable(came);
  }
}

/// Of a request: to this server alone, whatever proxies the environment names.
void set_up(CURL* call, const HttpBounds& bounds, Reply& reply) {
  const auto at_most = std::chrono::ceil<std::chrono::milliseconds>(bounds.at_most);
  // 0 would be for ever.
  curl_easy_setopt(call, CURLOPT_TIMEOUT_MS,
                   static_cast<long>(std::max<std::int64_t>(at_most.count(), 1)));
  curl_easy_setopt(call, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(call, CURLOPT_PROXY, "");
  curl_easy_setopt(call, CURLOPT_HTTP09_ALLOWED, 0L);
  curl_easy_setopt(call, CURLOPT_HEADERFUNCTION, &take_head);
  curl_easy_setopt(call, CURLOPT_HEADERDATA, &reply);
  curl_easy_setopt(call, CURLOPT_WRITEFUNCTION, &take_body);
  curl_easy_setopt(call, CURLOPT_WRITEDATA, &reply);
}

Result<std::string> ask(const HostPort& numeric, const HostPort& place, std::string_view path,
                        const HttpBounds& bounds) {
  const Library library;
  const Handle call(curl_easy_init(), &curl_easy_cleanup);
  const Headers headers(
      curl_slist_append(nullptr, fmt::format("Host: {}", place.to_text()).c_str()),
      &curl_slist_free_all);
  if (call == nullptr || headers == nullptr) return Status::internal("libcurl does not begin");
  Reply reply{.bytes_max = bounds.bytes_max};
  set_up(call.get(), bounds, reply);
  std::array<char, CURL_ERROR_SIZE> why{};
  curl_easy_setopt(call.get(), CURLOPT_ERRORBUFFER, why.data());
  curl_easy_setopt(call.get(), CURLOPT_HTTPHEADER, headers.get());
  curl_easy_setopt(call.get(), CURLOPT_URL,
                   fmt::format("http://{}{}", numeric.to_text(), path).c_str());
  const CURLcode code = curl_easy_perform(call.get());
  if (code != CURLE_OK) {
    return error_of(code, why.front() != '\0' ? why.data() : curl_easy_strerror(code), reply,
                    bounds);
  }
  if (!reply.has_head) {
    return Status::unavailable(
        fmt::format("the answer was cut off in its head; {} bytes came", reply.bytes));
  }
  long status = 0;
  curl_easy_getinfo(call.get(), CURLINFO_RESPONSE_CODE, &status);
  if (status != 200) return Status::corruption(fmt::format("it answers with status {}", status));
  return std::move(reply.body);
}

}  // namespace

Result<std::string> http_get(const HostPort& place, std::string_view path,
                             const HttpBounds& bounds) {
  BL_ASSIGN_OR_RETURN(const HostPort numeric, resolve(place));
  auto body = ask(numeric, place, path, bounds);
  if (body.is_ok()) return body;
  return body.status().with_context(fmt::format("http://{}{}", place.to_text(), path));
}

}  // namespace batchloom::cli
