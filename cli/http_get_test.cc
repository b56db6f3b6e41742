// SPDX-License-Identifier: Apache-2.0
#include "cli/http_get.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cstdlib>
#include <functional>
#include <memory>

#include "batchloom/base/real_runtime.h"
#include "batchloom/objstore/posix_fd.h"

namespace batchloom::cli {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::HasSubstr;
using testing::MatchesRegex;

/// Where a client that keeps no bound would be let go, so that its test fails and does not hang.
constexpr std::size_t kDripsMost = 400;
constexpr int kDripMs = 5;
constexpr int kSilentMs = 2'000;
constexpr std::size_t kFloodBytes = 100'000'000;

/// A client that was accepted.
class Client {
 public:
  explicit Client(int fd) : fd_(fd) {}

  /// False once it has hung up.
  bool send(std::string_view text) {
    while (!text.empty()) {
      const ssize_t size = ::send(fd_, text.data(), text.size(), MSG_NOSIGNAL);
      if (size <= 0) return false;
      text.remove_prefix(static_cast<std::size_t>(size));
      sent += static_cast<std::size_t>(size);
    }
    return true;
  }

  /// Whether it hangs up within that time.
  bool hangs_up(int within_ms) const {
    pollfd ready{.fd = fd_, .events = POLLRDHUP, .revents = 0};
    return poll(&ready, 1, within_ms) > 0;
  }

  std::string read_request() const {
    std::string request;
    std::array<char, 4096> part{};
    while (!request.ends_with("\r\n\r\n")) {
      const ssize_t size = recv(fd_, part.data(), part.size(), 0);
      if (size <= 0) break;
      request.append(part.data(), static_cast<std::size_t>(size));
    }
    return request;
  }

  std::size_t sent = 0;

 private:
  const int fd_;
};

/// Serves one client on loopback, as a test says, and hangs up.
class OneAnswer {
 public:
  explicit OneAnswer(std::function<void(Client&)> answer)
      : listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), answer_(std::move(answer)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    const bool listens = bind(listener_.get(), any, size) == 0 && listen(listener_.get(), 1) == 0 &&
                         getsockname(listener_.get(), any, &size) == 0;
    EXPECT_TRUE(listens);
    place_ = {"127.0.0.1", ntohs(address.sin_port)};
    task_ = runtime_->spawn("server", [this](const std::stop_token&) { serve(); });
  }
  ~OneAnswer() {
    shutdown(listener_.get(), SHUT_RDWR);  // Where nobody came.
    task_->join();
  }
  OneAnswer(const OneAnswer&) = delete;
  OneAnswer& operator=(const OneAnswer&) = delete;

  const HostPort& place() const { return place_; }

 private:
  void serve() {
    const objstore::Fd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!fd.is_open()) return;
    Client client(fd.get());
    answer_(client);
  }

  const std::unique_ptr<Runtime> runtime_ = make_real_runtime();
  const objstore::Fd listener_;
  const std::function<void(Client&)> answer_;
  HostPort place_;
  std::unique_ptr<Task> task_;
};

/// What is said to a client that a server answers so, of bounds that tests can wait for.
Result<std::string> get_from(const std::function<void(Client&)>& answer) {
  const OneAnswer server([&](Client& client) {
    EXPECT_THAT(client.read_request(), HasSubstr("GET /metrics HTTP/1."));
    answer(client);
  });
  auto got =
      http_get(server.place(), "/metrics", {.at_most = milliseconds(200), .bytes_max = 1 << 20});
  if (!got.is_ok()) {
    EXPECT_THAT(got.status().to_string(),
                HasSubstr("http://" + server.place().to_text() + "/metrics: "));
  }
  return got;
}

void drip(Client& client) {
  for (std::size_t i = 0; i < kDripsMost; ++i) {
    if (!client.send("x") || client.hangs_up(kDripMs)) return;
  }
}

void flood(Client& client, std::string_view line) {
  std::string many;
  while (many.size() < (1 << 16)) many += line;
  while (client.sent < kFloodBytes && client.send(many)) {
  }
}

TEST(HttpGet, GivesTheBodyOfAnAnswer) {
  std::string request;
  const OneAnswer server([&](Client& client) {
    request = client.read_request();
    client.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\na 12\nand more");
  });
  EXPECT_EQ(http_get({"localhost", server.place().port}, "/metrics").value(), "a 12\n");
  EXPECT_THAT(request, HasSubstr("GET /metrics HTTP/1."));
  EXPECT_THAT(request, HasSubstr("\r\nHost: localhost:" + std::to_string(server.place().port)));
}

TEST(HttpGet, WithoutALengthAnAnswerEndsWithItsConnection) {
  const auto got = get_from([](Client& client) { client.send("HTTP/1.0 200 OK\r\n\r\na 12\n"); });
  EXPECT_EQ(got.value(), "a 12\n");
}

TEST(HttpGet, AsksNoProxy) {
  const OneAnswer server([&](Client& client) {
    client.read_request();
    client.send("HTTP/1.0 200 OK\r\n\r\n");
  });
  setenv("http_proxy", "http://127.0.0.1:1", 1);
  const auto got = http_get(server.place(), "/metrics");
  unsetenv("http_proxy");
  EXPECT_TRUE(got.is_ok()) << got.status().to_string();
}

TEST(HttpGet, WhereNobodyListensItSaysSo) {
  const auto got = http_get({"127.0.0.1", 1}, "/metrics");
  ASSERT_TRUE(got.is(ErrorKind::kUnavailable));
  EXPECT_THAT(got.status().to_string(), HasSubstr("http://127.0.0.1:1/metrics: "));
}

TEST(HttpGet, WhoSendsByteByByteIsNotListenedToForEver) {
  for (const std::string_view head : {"HTTP/1.1 200 OK\r\nX: ", "HTTP/1.1 200 OK\r\n\r\n",
                                      "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"}) {
    const auto got = get_from([&](Client& client) {
      client.send(head);
      drip(client);
    });
    ASSERT_TRUE(got.is(ErrorKind::kUnavailable)) << head;
    EXPECT_THAT(got.status().to_string(),
                MatchesRegex(".*: no whole answer within 0\\.2 s: [0-9]+ bytes came"))
        << head;
  }
}

TEST(HttpGet, WhoNeverAnswersIsNotWaitedForForEver) {
  const auto got = get_from([](Client& client) { client.hangs_up(kSilentMs); });
  ASSERT_TRUE(got.is(ErrorKind::kUnavailable));
  EXPECT_THAT(got.status().to_string(), HasSubstr("no whole answer within 0.2 s: 0 bytes came"));
}

TEST(HttpGet, WhoHangsUpEarlyHasNotAnswered) {
  for (const auto& [sent, why] : std::vector<std::pair<std::string_view, std::string_view>>{
           {"", "Empty reply"},
           {"HTTP/1.1 200 OK\r\nContent-Ty", "cut off in its head; 17 bytes came"},
           {"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\na 12\n",
            "cut off: transfer closed with 95 bytes remaining to read; 45 bytes came"}}) {
    const auto got = get_from([&](Client& client) { client.send(sent); });
    ASSERT_TRUE(got.is(ErrorKind::kUnavailable)) << sent;
    EXPECT_THAT(got.status().to_string(), HasSubstr(why));
  }
}

TEST(HttpGet, AnAnswerThatIsTooLongIsNotReadToItsEnd) {
  for (const std::string_view length : {"", "Content-Length: 100000000\r\n"}) {
    std::size_t sent = 0;
    const auto got = get_from([&](Client& client) {
      client.send(std::string("HTTP/1.1 200 OK\r\n") + std::string(length) + "\r\n");
      flood(client, "a 12\n");
      sent = client.sent;
    });
    ASSERT_TRUE(got.is(ErrorKind::kCorruption)) << got.status().to_string();
    EXPECT_THAT(got.status().to_string(),
                MatchesRegex(".*: its answer is longer than 1 MiB: [0-9]+ bytes came"));
    EXPECT_LT(sent, kFloodBytes);
  }
}

TEST(HttpGet, AHeadWithoutAnEndIsNotReadForEver) {
  for (const auto& [line, why] : std::vector<std::pair<std::string_view, std::string_view>>{
           {"X: 12345678901234567890\r\n", "its answer's head is longer than 64 KiB: 6"},
           {"x", "a line of its head has no end: "}}) {
    std::size_t sent = 0;
    const auto got = get_from([&](Client& client) {
      client.send("HTTP/1.1 200 OK\r\nA: ");
      flood(client, line);
      sent = client.sent;
    });
    ASSERT_TRUE(got.is(ErrorKind::kCorruption)) << got.status().to_string();
    EXPECT_THAT(got.status().to_string(), AllOf(HasSubstr(why), HasSubstr(" bytes came")));
    EXPECT_LT(sent, kFloodBytes);
  }
}

TEST(HttpGet, WhatIsNotHttpOrNot200IsRefused) {
  const auto answered = [](std::string_view text) {
    return get_from([=](Client& client) { client.send(text); }).status();
  };
  const Status garbage = answered("220 mail.example ESMTP\r\n");
  EXPECT_TRUE(garbage.is(ErrorKind::kCorruption));
  EXPECT_THAT(garbage.to_string(), HasSubstr("the answer is not HTTP: "));
  const Status missing = answered("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
  EXPECT_TRUE(missing.is(ErrorKind::kCorruption));
  EXPECT_THAT(missing.to_string(), HasSubstr("it answers with status 404"));
  // Nobody is followed to another place.
  const Status moved =
      answered("HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n");
  EXPECT_THAT(moved.to_string(), HasSubstr("it answers with status 302"));
}

}  // namespace
}  // namespace batchloom::cli
