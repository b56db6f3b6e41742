// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "batchloom/sources/parquet_reader.h"

namespace batchloom::sources {
namespace {

TEST(ParquetAbsent, TheMessageSaysWhatToInstall) {
  const auto tokenizer = make_bytes_tokenizer({.vocab = 256, .begin = {}, .end = {}}).value();
  EXPECT_TRUE(parquet_is_built().is(ErrorKind::kInvalid));
  const auto reader = open_parquet(read_bytes("a.parquet", {}), {}, *tokenizer, {});
  ASSERT_TRUE(reader.is(ErrorKind::kInvalid));
  const std::string message(reader.status().message());
  EXPECT_THAT(message, testing::HasSubstr("a.parquet"));
  EXPECT_THAT(message, testing::HasSubstr("pip install pyarrow==" BATCHLOOM_PYARROW));
}

}  // namespace
}  // namespace batchloom::sources
