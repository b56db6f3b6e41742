// SPDX-License-Identifier: Apache-2.0
#include "batchloom/sources/tokenizer.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

namespace batchloom::sources {
namespace {

TEST(Tokenizer, BytesAreIds) {
  const auto tokenizer = make_bytes_tokenizer({.vocab = 256, .begin = {}, .end = {}}).value();
  std::vector<TokenId> ids = {7};
  ASSERT_TRUE(tokenizer->encode(std::string("a\0\xff", 3), ids).is_ok());
  EXPECT_EQ(ids, (std::vector<TokenId>{7, 97, 0, 255}));
  EXPECT_TRUE(tokenizer->takes_text());
}

TEST(Tokenizer, SettingsAreLookedAt) {
  const std::pair<TokenSettings, std::string> cases[] = {
      {{.vocab = 0, .begin = {}, .end = {}}, "tokens.vocab: 0; expected 1 to 2147483648"},
      {{.vocab = kMaxVocab + 1, .begin = {}, .end = {}},
       "tokens.vocab: 2147483649; expected 1 to 2147483648"},
      {{.vocab = 9, .begin = {8, 9}, .end = {}},
       "tokens.begin: id 9 is outside of the vocabulary of 9 ids"},
      {{.vocab = 9, .begin = {}, .end = {10}},
       "tokens.end: id 10 is outside of the vocabulary of 9 ids"},
  };
  for (const auto& [settings, why] : cases) {
    EXPECT_EQ(make_ids_tokenizer(settings).status().message(), why);
    EXPECT_TRUE(make_bytes_tokenizer(settings).is(ErrorKind::kInvalid));
  }
  EXPECT_EQ(make_bytes_tokenizer({.vocab = 255, .begin = {}, .end = {}}).status().message(),
            "tokens.vocab: 255; the tokenizer bytes needs at least 256");
  EXPECT_TRUE(make_ids_tokenizer({.vocab = 1, .begin = {0}, .end = {0}}).is_ok());
}

TEST(Tokenizer, ItsDigestIsOfAllThatDecidesIds) {
  const std::vector<TokenSettings> all = {
      {.vocab = 300, .begin = {}, .end = {}},  {.vocab = 301, .begin = {}, .end = {}},
      {.vocab = 300, .begin = {1}, .end = {}}, {.vocab = 300, .begin = {}, .end = {1}},
      {.vocab = 300, .begin = {2}, .end = {}}, {.vocab = 300, .begin = {1, 2}, .end = {}},
  };
  std::set<std::uint64_t> digests;
  for (const TokenSettings& settings : all) {
    digests.insert(make_ids_tokenizer(settings).value()->digest());
    digests.insert(make_bytes_tokenizer(settings).value()->digest());
    EXPECT_EQ(make_ids_tokenizer(settings).value()->digest(),
              make_ids_tokenizer(settings).value()->digest());
  }
  EXPECT_EQ(digests.size(), 2 * all.size());
}

/// An index on disk holds it: no build may change it unseen.
TEST(Tokenizer, ItsDigestIsTheSameOnEveryHost) {
  EXPECT_EQ(make_bytes_tokenizer({.vocab = 300, .begin = {256}, .end = {257}}).value()->digest(),
            13174290823095695159U);
}

}  // namespace
}  // namespace batchloom::sources
