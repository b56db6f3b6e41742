// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "batchloom/base/random.h"
#include "batchloom/control/membership.h"
#include "batchloom/control/pipeline_testing.h"

namespace batchloom::control {
namespace {

using testing::HasSubstr;

/// `text` with a right mark, version and CRC.
Bytes framed(std::string_view text) {
  Bytes bytes = encode_membership({}).value();
  bytes.resize(6);
  bytes.insert(bytes.end(), as_bytes(text).begin(), as_bytes(text).end());
  const std::uint32_t crc = crc32c(bytes);
  bytes.resize(bytes.size() + sizeof(crc));
  store_le(crc, bytes.data() + bytes.size() - sizeof(crc));
  return bytes;
}

std::string refusal_of(std::string_view text) {
  return decode_membership(framed(text)).status().to_string();
}

TEST(MembershipCodec, ReadsWhatItWrites) {
  const Membership plain = membership_of_plain(plain_pipeline_text());
  const Bytes bytes = encode_membership(plain).value();
  EXPECT_EQ(decode_membership(bytes).value(), plain);
  EXPECT_EQ(bytes, framed(plain.text()));
  EXPECT_EQ(decode_membership(encode_membership({}).value()).value(), Membership());
}

TEST(MembershipCodec, EveryDamagedByteIsFound) {
  const Bytes good = encode_membership(membership_of_plain(plain_pipeline_text())).value();
  for (std::size_t i = 0; i < good.size(); ++i) {
    Bytes bad = good;
    bad[i] ^= std::byte{0x20};
    const bool is_version = i == 4 || i == 5;
    EXPECT_TRUE(
        decode_membership(bad).is(is_version ? ErrorKind::kInvalid : ErrorKind::kCorruption))
        << i;
    EXPECT_TRUE(decode_membership(ByteSpan(good).first(i)).is(ErrorKind::kCorruption)) << i;
  }
}

TEST(MembershipCodec, WhatIsNoListIsCorruption) {
  EXPECT_THAT(refusal_of("a = 1"), HasSubstr("corruption: membership: line 1: it does not end"));
  EXPECT_THAT(refusal_of("a = 1\n\n"), HasSubstr("line 2: no key"));
  EXPECT_THAT(refusal_of("a = 1\nb=2\n"), HasSubstr("line 2: no key"));
  EXPECT_THAT(refusal_of(" = 1\n"), HasSubstr("line 1: no key"));
  EXPECT_THAT(refusal_of("a = \n"), HasSubstr("line 1: no value"));
  EXPECT_THAT(refusal_of("a = 1\na = 1\n"), HasSubstr("line 2: its key does not ascend"));
  EXPECT_THAT(refusal_of("b = 1\na = 1\n"), HasSubstr("line 2: its key does not ascend"));
  EXPECT_THAT(refusal_of("a = \r\n"), HasSubstr("line 1: a control character"));
  EXPECT_THAT(decode_membership({}).status().to_string(), HasSubstr("0 bytes; at least 10"));
  EXPECT_THAT(decode_membership(framed(std::string(kMembershipMaxBytes, 'a'))).status().to_string(),
              HasSubstr(fmt::format("at most {}", kMembershipMaxBytes)));
}

TEST(MembershipCodec, AListThatIsTooLargeIsNotStored) {
  PipelineConfig config = parse_plain(plain_pipeline_text()).value().config;
  config.sources.resize(1);
  config.sources[0].paths.clear();
  std::vector<FileFingerprint> files;
  const std::string name(4000, 'f');
  for (int i = 0; i < 5'000; ++i) {
    files.push_back({fmt::format("{}{}", name, i), 1, 2});
    config.sources[0].paths.push_back(files.back().path);
  }
  const Membership large =
      Membership::create(config, std::vector<std::vector<FileFingerprint>>{files}).value();
  EXPECT_TRUE(encode_membership(large).is(ErrorKind::kExhausted));
  EXPECT_THAT(encode_membership(large).status().to_string(), HasSubstr("use fewer, larger files"));
}

TEST(MembershipCodec, BytesOfAnySortAreReadOrRefused) {
  Random random(7);
  const Bytes good = encode_membership(membership_of_plain(plain_pipeline_text())).value();
  for (int i = 0; i < 2'000; ++i) {
    std::string text(as_text(ByteSpan(good).subspan(6, good.size() - 10)));
    for (int edits = 0; edits < 3; ++edits) {
      text[random.below(text.size())] = static_cast<char>(random.below(256));
    }
    const Bytes bytes = framed(text);
    const auto read = decode_membership(bytes);
    if (read.is_ok()) {
      EXPECT_EQ(encode_membership(*read).value(), bytes);
    } else {
      EXPECT_TRUE(read.is(ErrorKind::kCorruption));
    }
  }
}

}  // namespace
}  // namespace batchloom::control
