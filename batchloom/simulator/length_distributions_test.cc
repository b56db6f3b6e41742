// SPDX-License-Identifier: Apache-2.0
#include "batchloom/simulator/length_distributions.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "batchloom/base/hash.h"
#include "batchloom/simulator/length_tables.h"

namespace batchloom::simulator {
namespace {

using Lengths = std::vector<std::uint32_t>;

constexpr std::uint32_t kNoLimit = 1 << 21;
constexpr std::size_t kManyDraws = 1'000'000;

/// At least a million samples of a distribution, but for what no seed decides: the last one.
Lengths many(std::string_view distribution, std::uint32_t context = kNoLimit) {
  std::uint64_t total = std::uint64_t{1} << 26;
  while (true) {
    Lengths lengths = draw_lengths({distribution, context, total, 1}).value();
    if (lengths.size() > kManyDraws) {
      lengths.pop_back();
      return lengths;
    }
    total *= 2;
  }
}

double tokens_of(const Lengths& lengths) {
  return static_cast<double>(std::accumulate(lengths.begin(), lengths.end(), std::uint64_t{0}));
}

/// How many samples of (above, up_to] there are, as a part of all.
double share_in(const Lengths& lengths, double above, double up_to) {
  std::size_t inside = 0;
  for (const std::uint32_t length : lengths) inside += above < length && length <= up_to ? 1 : 0;
  return double(inside) / double(lengths.size());
}

double token_percent_in(const Lengths& lengths, std::uint32_t above, std::uint32_t up_to) {
  double inside = 0;
  for (const std::uint32_t length : lengths) {
    if (above < length && length <= up_to) inside += length;
  }
  return 100 * inside / tokens_of(lengths);
}

TEST(LengthDistributions, WhatItRefusesAndSays) {
  const std::pair<LengthDraw, std::string> cases[] = {
      {{"github", 8192, 1, 1},
       "called 'github'; there are byted-like, github-like, prolong, lognormal-wide, wiki, wlb, "
       "llama3-sft, bimodal, uniform, one-giant"},
      {{"byted-like", 512, 1, 1},
       "a context of 512 tokens holds no sample of 'byted-like', whose shortest has 513"},
      {{"uniform", 0, 1, 1}, "a context of 0 tokens"},
      {{"bimodal", 0, 1, 1}, "whose shortest has 1"},
      {{"one-giant", 512, 1, 1}, "whose shortest has 513"},
      {{"uniform", 8, (std::uint64_t{1} << 34) + 1, 1}, "at most 17179869184 can be drawn"},
  };
  for (const auto& [draw, message] : cases) {
    const Status status = draw_lengths(draw).status();
    ASSERT_TRUE(status.is(ErrorKind::kInvalid)) << message;
    EXPECT_NE(status.message().find(message), std::string::npos) << status.to_string();
  }
}

RC_GTEST_PROP(LengthDistributions, MakeTheTotalOfWhatFits, ()) {
  const auto names = length_distribution_names();
  const LengthDraw draw{.distribution = *rc::gen::elementOf(names),
                        .context_tokens = *rc::gen::inRange<std::uint32_t>(1024, 1 << 20),
                        .total_tokens = *rc::gen::inRange<std::uint64_t>(0, 1 << 22),
                        .seed = *rc::gen::arbitrary<std::uint64_t>()};
  const Lengths lengths = draw_lengths(draw).value();
  RC_ASSERT(std::accumulate(lengths.begin(), lengths.end(), std::uint64_t{0}) == draw.total_tokens);
  for (const std::uint32_t length : lengths) {
    RC_ASSERT(length > 0u);
    RC_ASSERT(length <= draw.context_tokens);
  }
  RC_ASSERT(draw_lengths(draw).value() == lengths);
}

/// A longer draw begins with the shorter one, but for the sample that was cut.
RC_GTEST_PROP(LengthDistributions, OnlyTheLastSampleIsCut, ()) {
  const auto names = length_distribution_names();
  LengthDraw draw{.distribution = *rc::gen::elementOf(names),
                  .context_tokens = kNoLimit,
                  .total_tokens = *rc::gen::inRange<std::uint64_t>(1, 1 << 22),
                  .seed = *rc::gen::arbitrary<std::uint64_t>()};
  const Lengths part = draw_lengths(draw).value();
  draw.total_tokens *= 2;
  const Lengths whole = draw_lengths(draw).value();
  RC_ASSERT(whole.size() >= part.size());
  RC_ASSERT(std::equal(part.begin(), part.end() - 1, whole.begin()));
  RC_ASSERT(part.back() <= whole[part.size() - 1]);
}

TEST(LengthDistributions, ASeedIsADraw) {
  const LengthDraw one{"byted-like", 8192, 1 << 20, 1};
  LengthDraw two = one;
  two.seed = 2;
  EXPECT_NE(draw_lengths(one).value(), draw_lengths(two).value());
}

TEST(LengthDistributions, SamplesFallIntoTheRangesByTheirShares) {
  for (const LengthTable& table : length_tables()) {
    std::vector<std::size_t> range_of(kNoLimit + 1, table.ranges.size());
    double all_weights = 0;
    for (std::size_t i = 0; i < table.ranges.size(); ++i) {
      const auto& [above, up_to, weight] = table.ranges[i];
      std::fill(range_of.begin() + above + 1, range_of.begin() + up_to + 1, i);
      all_weights += double(weight);
    }
    std::vector<std::size_t> found(table.ranges.size() + 1);
    const Lengths lengths = many(table.name);
    for (const std::uint32_t length : lengths) ++found[range_of[length]];
    EXPECT_EQ(found.back(), 0u) << table.name << ": outside of all ranges";
    for (std::size_t i = 0; i < table.ranges.size(); ++i) {
      const auto& [above, up_to, weight] = table.ranges[i];
      const double expected = double(lengths.size()) * double(weight) / all_weights;
      EXPECT_NEAR(double(found[i]), expected, 5 * std::sqrt(expected) + 1)
          << table.name << " (" << above << ", " << up_to << "]";
    }
  }
}

TEST(LengthDistributions, TokensHaveThePublishedShares) {
  const std::map<std::string, std::vector<double>> published = {
      {"byted-like", {7.6, 9.5, 10.2, 10.7, 10.4, 7.6, 7.3, 7.6, 7.6, 9.7, 12.1}},
      {"github-like", {34.0, 14.2, 11.4, 8.8, 7.6, 7.6, 6.4, 4.5, 2.6, 1.6, 1.1}},
  };
  for (const auto& [name, percents] : published) {
    const Lengths lengths = many(name);
    std::uint32_t above = 512;
    for (const double percent : percents) {
      const std::uint32_t up_to = above == 512 ? 2048 : 2 * above;
      EXPECT_NEAR(token_percent_in(lengths, above, up_to), percent, percent / 10)
          << name << " " << up_to;
      above = up_to;
    }
  }
}

TEST(LengthDistributions, SharesAreRenormalisedWithinTheContext) {
  const Lengths lengths = many("byted-like", 65536);
  EXPECT_LE(std::ranges::max(lengths), 65536u);
  EXPECT_NEAR(token_percent_in(lengths, 512, 2048), 100 * 7.6 / 56.0, 0.3);
  EXPECT_NEAR(token_percent_in(lengths, 32768, 65536), 100 * 7.6 / 56.0, 0.3);
}

/// (4096, 8192] has log(6000 / 4096) of log(8192 / 4096) left.
TEST(LengthDistributions, AContextMayCutARange) {
  const Lengths lengths = many("byted-like", 6000);
  EXPECT_EQ(std::ranges::max(lengths), 6000u);
  const double left = 128.190820 * std::log2(6000.0 / 4096);
  const double expected = left / (2 * 254.705943 + 238.786822 + left);
  EXPECT_NEAR(share_in(lengths, 4096, 6000), expected, 0.002);
}

TEST(LengthDistributions, ARangeIsLogUniform) {
  const Lengths lengths = many("github-like");
  const double all = share_in(lengths, 1024, 2048);
  for (const double part : {0.1, 0.25, 0.5, 0.75, 0.9}) {
    EXPECT_NEAR(share_in(lengths, 1024, 1024 * std::exp2(part)) / all, part, 0.005);
  }
}

TEST(LengthDistributions, HaveTheQuantilesOfTheirSources) {
  const Lengths prolong = many("prolong");
  EXPECT_NEAR(share_in(prolong, 0, std::exp(7.68)), 0.5, 0.005);
  EXPECT_NEAR(share_in(prolong, 0, std::exp(7.68 + 0.74 * 2.3263)), 0.99, 0.001);
  const Lengths wide = many("lognormal-wide");
  EXPECT_NEAR(share_in(wide, 0, std::exp(7.7)), 0.5, 0.005);
  EXPECT_NEAR(share_in(wide, 0, std::exp(7.7 + 1.6 * 2.3263)), 0.99, 0.001);
  const Lengths wiki = many("wiki");
  EXPECT_NEAR(share_in(wiki, 0, 347), 0.5, 0.005);
  EXPECT_NEAR(share_in(wiki, 0, 10'900), 0.99, 0.001);
  EXPECT_NEAR(tokens_of(wiki) / double(wiki.size()), 1'040, 20);
}

TEST(LengthDistributions, WlbHasItsTail) {
  const Lengths lengths = many("wlb");
  EXPECT_NEAR(share_in(lengths, 0, 3'200), 0.5, 0.002);
  EXPECT_NEAR(share_in(lengths, 65536, 125'000), 0.0053, 0.0003);
  EXPECT_NEAR(token_percent_in(lengths, 65536, 125'000), 12.8, 0.3);
  double tail = 0;
  double all = 0;
  for (const std::uint32_t length : lengths) {
    const double square = double(length) * length;
    all += square;
    if (length > 65536) tail += square;
  }
  EXPECT_NEAR(tail / all, 0.67, 0.01);
}

TEST(LengthDistributions, Llama3SftMixesTwoMeans) {
  const Lengths lengths = many("llama3-sft");
  const double longer = share_in(lengths, 5000, kNoLimit);
  EXPECT_NEAR(longer, 0.0011, 0.0001);
  const double long_tokens = token_percent_in(lengths, 5000, kNoLimit) / 100 * tokens_of(lengths);
  EXPECT_NEAR(long_tokens / (longer * double(lengths.size())), 37'000, 2'000);
  const double short_tokens = tokens_of(lengths) - long_tokens;
  EXPECT_NEAR(short_tokens / ((1 - longer) * double(lengths.size())), 1'000, 5);
}

TEST(LengthDistributions, BimodalHasTwoModes) {
  const Lengths lengths = many("bimodal", 1 << 17);
  EXPECT_NEAR(share_in(lengths, 1024, 2048), 0.99, 0.001);
  EXPECT_NEAR(share_in(lengths, 1 << 16, 1 << 17), 0.01, 0.001);
  EXPECT_NEAR(share_in(lengths, 1024, 2048) + share_in(lengths, 1 << 16, 1 << 17), 1, 1e-9);
}

TEST(LengthDistributions, UniformIsUniform) {
  const Lengths lengths = many("uniform", 100);
  for (std::uint32_t length = 1; length <= 100; length += 3) {
    EXPECT_NEAR(share_in(lengths, length - 1, length), 0.01, 0.001) << length;
  }
}

TEST(LengthDistributions, OneGiantIsFirst) {
  const Lengths lengths = draw_lengths({"one-giant", 1 << 20, 1 << 22, 1}).value();
  EXPECT_EQ(lengths.front(), 1u << 20);
  EXPECT_LE(*std::max_element(lengths.begin() + 1, lengths.end()), 2048u);
  EXPECT_GT(*std::min_element(lengths.begin() + 1, lengths.end() - 1), 512u);
  EXPECT_EQ(draw_lengths({"one-giant", 1 << 20, 1000, 1}).value(), Lengths{1000});
}

std::uint64_t lengths_hash(const Lengths& lengths) {
  Digest digest;
  for (const std::uint32_t length : lengths) digest.add_int(length);
  return digest.value();
}

/// The same on every host; a change here changes every study that was published.
TEST(LengthDistributions, Golden) {
  const std::map<std::string_view, std::uint64_t> golden = {
      {"byted-like", 0xad194c0f873e99c7}, {"github-like", 0x13051b2c632b75be},
      {"prolong", 0xb247bd3ab60892e2},    {"lognormal-wide", 0x156484ddfad91804},
      {"wiki", 0x89c5942f07dd457b},       {"wlb", 0x9d6d06127e08b384},
      {"llama3-sft", 0x1e39b05fc9f10e68}, {"bimodal", 0x1994f505a21988c4},
      {"uniform", 0x58e8acafcacc8a4b},    {"one-giant", 0x5b4c379067d947b7},
  };
  for (const std::string_view name : length_distribution_names()) {
    const Lengths lengths = draw_lengths({name, 1 << 20, 1 << 24, 1}).value();
    const auto known = golden.find(name);
    ASSERT_TRUE(known != golden.end()) << name << " " << lengths_hash(lengths);
    EXPECT_EQ(lengths_hash(lengths), known->second) << name << ", " << lengths.size() << " lengths";
  }
}

}  // namespace
}  // namespace batchloom::simulator
