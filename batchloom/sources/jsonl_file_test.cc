// SPDX-License-Identifier: Apache-2.0
#include "batchloom/sources/jsonl_file.h"

#include <gmock/gmock.h>
#include <zlib.h>

#include <string>
#include <utility>

#include "batchloom/base/bytes.h"
#include "batchloom/sources/reader_conformance_testing.h"

namespace batchloom::sources {
namespace {

using testing::HasSubstr;

const Tokenizer& byte_ids() {
  static const auto tokenizer = make_bytes_tokenizer({.vocab = 256}).value();
  return *tokenizer;
}

Result<std::unique_ptr<ShardReader>> open_compressed(std::unique_ptr<ByteReader> bytes,
                                                     Compression compression) {
  return open_jsonl_file({.bytes = std::move(bytes), .compression = compression},
                         {.fields = TextField{"text"}}, byte_ids(), {});
}

ReaderFormat compressed_format(const std::string& file, Compression compression) {
  const std::string ending = compression == Compression::kGzip ? ".jsonl.gz" : ".jsonl.zst";
  return {
      .name = file + "_" + std::string(to_string(compression)),
      .files = {fixture_bytes("../compressed/" + file + ending)},
      .empty_files = {fixture_bytes("../compressed/empty" + ending)},
      .records = fixture_records("text"),
      .open = [=](ShardFiles files) { return open_compressed(std::move(files[0]), compression); },
      // Both commands write checksums.
      .may_change_records = [](std::size_t, std::size_t) { return false; }};
}

INSTANTIATE_TEST_SUITE_P(Compressed, ReaderConformance,
                         testing::Values(compressed_format("text", Compression::kGzip),
                                         compressed_format("members", Compression::kGzip),
                                         compressed_format("text", Compression::kZstd),
                                         compressed_format("frames", Compression::kZstd)),
                         format_name);

Status refusal_of(std::string_view bytes, Compression compression) {
  return open_compressed(read_bytes("a", to_bytes(bytes)), compression).status();
}

std::string gzip_of(std::string_view content) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(content.size() + 100, '\0');
  std::string in(content);
  stream.next_in = reinterpret_cast<Bytef*>(in.data());
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(out.size() - stream.avail_out);
  deflateEnd(&stream);
  return out;
}

TEST(JsonlFile, WhatIsNotCompressedAsItsNameSaysIsRefused) {
  const Status plain = refusal_of("{\"text\":\"a\"}\n", Compression::kGzip);
  EXPECT_EQ(plain.kind(), ErrorKind::kCorruption);
  EXPECT_EQ(plain.message(), "a: offset 0: gzip: incorrect header check");
  EXPECT_THAT(refusal_of(gzip_of("{}"), Compression::kZstd).message(),
              HasSubstr("a: offset 0: zstd: Unknown frame descriptor"));
  EXPECT_THAT(refusal_of(gzip_of(gzip_of("{}")), Compression::kGzip).message(),
              HasSubstr("the file is compressed by gzip; its name does not say so"));
  EXPECT_EQ(refusal_of("", Compression::kZstd).message(),
            "a: offset 0: zstd: the file is empty; it was cut");
}

TEST(JsonlFile, WhatStandsBehindAMemberIsAnotherOrPadding) {
  const std::string member = gzip_of("{\"text\":\"a\"}\n");
  EXPECT_TRUE(refusal_of(member + std::string(300'000, '\0'), Compression::kGzip).is_ok());
  const Status junk = refusal_of(member + "junk", Compression::kGzip);
  EXPECT_THAT(junk.message(), HasSubstr("gzip: incorrect header check")) << junk.to_string();
  EXPECT_THAT(refusal_of(std::string(3, '\0') + member, Compression::kGzip).message(),
              HasSubstr("offset 0: gzip: incorrect header check"));
}

TEST(JsonlFile, PlacesOfManyRecordsAreBounded) {
  const auto opened =
      open_jsonl_file({.bytes = read_bytes("a", to_bytes(gzip_of("{}\n{}\n{}\n"))),
                       .compression = Compression::kGzip},
                      {.fields = TextField{"text"}}, byte_ids(), {}, 2 * sizeof(RecordPlace));
  EXPECT_EQ(opened.status().kind(), ErrorKind::kExhausted) << opened.status().to_string();
}

}  // namespace
}  // namespace batchloom::sources
