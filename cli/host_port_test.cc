// SPDX-License-Identifier: Apache-2.0
#include "cli/host_port.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "batchloom/objstore/posix_fd.h"

namespace batchloom::cli {
namespace {

using testing::HasSubstr;

TEST(HostPort, IsReadAndWritten) {
  const auto parsed = [](std::string_view text) { return parse_host_port("--x", text).value(); };
  EXPECT_EQ(parsed("127.0.0.1:9464"), (HostPort{"127.0.0.1", 9464}));
  EXPECT_EQ(parsed("localhost:0"), (HostPort{"localhost", 0}));
  EXPECT_EQ(parsed("a-b.c:65535"), (HostPort{"a-b.c", 65535}));
  for (const std::string text : {"127.0.0.1:9464", "a.b:80"}) {
    EXPECT_EQ(parsed(text).to_text(), text);
  }
}

TEST(HostPort, AllElseIsRefused) {
  for (const std::string_view text :
       {"", ":", "9464", ":9464", "localhost", "localhost:", "localhost:http", "localhost:-1",
        "localhost:65536", "localhost:1.5", "localhost: 1", "::1:9464", "[::1]", "[::1]:1", "[]:1",
        "[127.0.0.1]:1", "http://localhost:1", "a b:1"}) {
    const auto parsed = parse_host_port("--metrics", text);
    ASSERT_TRUE(parsed.is(ErrorKind::kInvalid)) << text;
    EXPECT_THAT(parsed.status().to_string(), HasSubstr("--metrics: '")) << text;
  }
}

TEST(HostPort, IsResolvedToNumbers) {
  EXPECT_EQ(resolve({"127.0.0.1", 7}).value(), (HostPort{"127.0.0.1", 7}));
  EXPECT_EQ(resolve({"localhost", 7}).value(), (HostPort{"127.0.0.1", 7}));
  const auto unknown = resolve({"no.such.host.invalid", 7});
  ASSERT_TRUE(unknown.is(ErrorKind::kInvalid));
  EXPECT_THAT(unknown.status().to_string(), HasSubstr("host 'no.such.host.invalid': "));
}

TEST(HostPort, APortThatIsTakenIsNamed) {
  const objstore::Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  ASSERT_EQ(bind(fd.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(fd.get(), 1), 0);
  ASSERT_EQ(getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  const HostPort place{"127.0.0.1", ntohs(address.sin_port)};
  const Status taken = check_listen(place);
  EXPECT_THAT(taken.to_string(), HasSubstr("cannot listen at " + place.to_text()));
  EXPECT_THAT(taken.to_string(), HasSubstr("in use; choose another port, or 0"));
  EXPECT_TRUE(check_listen({"127.0.0.1", 0}).is_ok());
  EXPECT_THAT(check_listen({"192.0.2.1", 0}).to_string(), HasSubstr("no address of this host"));
}

}  // namespace
}  // namespace batchloom::cli
