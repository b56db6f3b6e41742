// SPDX-License-Identifier: Apache-2.0
#include "batchloom/construction/record_cut.h"

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include <numeric>

#include "batchloom/planning/record_table.h"

namespace batchloom::construction {
namespace {

using store::LabelInterval;
using testing::HasSubstr;

/// A record, and what of it counts, token by token.
struct MaskedRecord {
  std::vector<std::uint32_t> tokens;
  std::optional<std::vector<std::uint8_t>> mask;
  std::vector<LearnedInterval> learned;  ///< Of the mask.

  RecordContent content() const {
    return {TokenSpan(tokens), mask ? LossMask(learned) : std::nullopt, {}};
  }
  /// Whether the label of token `i` counts, by the rules' words.
  bool counts(std::size_t i, std::size_t used) const {
    return i + 1 < used && (!mask || (*mask)[i + 1] != 0);
  }
};

MaskedRecord any_record() {
  MaskedRecord record;
  record.tokens.resize(*rc::gen::inRange<std::size_t>(1, 40));
  std::iota(record.tokens.begin(), record.tokens.end(), 100);
  if (*rc::gen::arbitrary<bool>()) {
    record.mask = *rc::gen::container<std::vector<std::uint8_t>>(
        record.tokens.size(), rc::gen::inRange<std::uint8_t>(0, 2));
    record.learned = learned_intervals(*record.mask);
  }
  return record;
}

CutRule any_rule() {
  return {*rc::gen::inRange<std::uint32_t>(1, 45),
          *rc::gen::element(OverLength::kSplit, OverLength::kTruncate, OverLength::kDrop)};
}

/// Whether label `i` of the part counts.
bool part_counts(const PartShape& shape, std::uint32_t i) {
  if (!shape.labels) return i < store::existing_labels(shape.tokens, shape.has_next_token);
  return std::ranges::any_of(
      *shape.labels, [i](const LabelInterval& label) { return label.begin <= i && i < label.end; });
}

RC_GTEST_PROP(RecordCut, PartsJoinedGiveTheRecord, ()) {
  const MaskedRecord record = any_record();
  const CutRule rule = any_rule();
  const auto tokens = static_cast<std::uint32_t>(record.tokens.size());
  const std::uint32_t used = used_tokens(rule, tokens);
  std::uint32_t at = 0;
  std::uint32_t valid = 0;
  for (model::PartIndex part; part.value < part_count(rule, tokens); ++part) {
    const PartContent content = cut_part(rule, record.content(), part).value();
    const PartShape& shape = content.shape;
    RC_ASSERT(shape == shape_of_part(rule, {part, tokens}, record.content().mask));
    RC_ASSERT(shape.first_position == at);
    RC_ASSERT(shape.tokens >= 1U && shape.tokens <= rule.max_sample_tokens);
    RC_ASSERT(content.tokens.size() == shape.tokens);
    std::uint32_t counted = 0;
    for (std::uint32_t i = 0; i < shape.tokens; ++i, ++at) {
      RC_ASSERT(content.tokens[i] == record.tokens[at]);
      RC_ASSERT(part_counts(shape, i) == record.counts(at, used));
      if (part_counts(shape, i)) ++counted;
    }
    RC_ASSERT(shape.valid_labels == counted);
    RC_ASSERT(content.next_token.has_value() == (at < used));
    if (at < used) RC_ASSERT(*content.next_token == record.tokens[at]);
    valid += counted;
  }
  RC_ASSERT(at == used);
  std::uint32_t expected = 0;
  for (std::uint32_t i = 0; i < used; ++i) expected += record.counts(i, used) ? 1U : 0U;
  RC_ASSERT(valid == expected);
  RC_ASSERT(cut_part(rule, record.content(), model::PartIndex(part_count(rule, tokens)))
                .is(ErrorKind::kInvalid));
}

RC_GTEST_PROP(RecordCut, SaysWhatPlanningsMetadataSays, ()) {
  const CutRule rule{*rc::gen::inRange<std::uint32_t>(1, 30),
                     *rc::gen::element(OverLength::kSplit, OverLength::kTruncate)};
  const auto tokens = *rc::gen::inRange<std::uint32_t>(1, 100);
  auto table =
      planning::RecordTable::create({{"a", {{.tokens = used_tokens(rule, tokens)}}}}).value();
  for (model::PartIndex part; part.value < part_count(rule, tokens); ++part) {
    const PartShape shape = shape_of_part(rule, {part, tokens}, std::nullopt);
    const planning::Part drawn{
        .id = {{}, {}, {}, part}, .tokens = shape.tokens, .first_position = shape.first_position};
    const model::SampleMeta meta = table.describe(drawn).value();
    RC_ASSERT(meta.valid_labels == shape.valid_labels);
  }
}

RC_GTEST_PROP(RecordCut, BothWidthsGiveTheSame, ()) {
  const MaskedRecord wide = any_record();
  const std::vector<std::uint16_t> narrow(wide.tokens.begin(), wide.tokens.end());
  RecordContent content = wide.content();
  content.tokens = TokenSpan(narrow);
  const CutRule rule{7};
  const PartContent a = cut_part(rule, wide.content(), model::PartIndex(0)).value();
  const PartContent b = cut_part(rule, content, model::PartIndex(0)).value();
  RC_ASSERT(a.shape == b.shape);
  RC_ASSERT(a.next_token == b.next_token);
  RC_ASSERT(b.tokens.bytes().size() == 2U * a.shape.tokens);
  for (std::uint32_t i = 0; i < a.shape.tokens; ++i) RC_ASSERT(a.tokens[i] == b.tokens[i]);
}

TEST(RecordCut, AMaskCountsLabelsOneBeforeItsTokens) {
  // The prompt is tokens 0 to 2, the answer 3 to 5, and a word of the prompt follows.
  const std::vector<LearnedInterval> answer = {{3, 6}};
  const PartShape whole = shape_of_part({8}, {model::PartIndex(0), 7}, LossMask(answer));
  EXPECT_EQ(whole.labels, (std::vector<LabelInterval>{{2, 5}}));
  EXPECT_EQ(whole.valid_labels, 3U);
  EXPECT_FALSE(whole.has_next_token);
  // Cut before the answer: the first part predicts its first token.
  const PartShape first = shape_of_part({3}, {model::PartIndex(0), 7}, LossMask(answer));
  EXPECT_EQ(first.labels, (std::vector<LabelInterval>{{2, 3}}));
  const PartShape second = shape_of_part({3}, {model::PartIndex(1), 7}, LossMask(answer));
  EXPECT_EQ(second.labels, (std::vector<LabelInterval>{{0, 2}}));
  const PartShape third = shape_of_part({3}, {model::PartIndex(2), 7}, LossMask(answer));
  EXPECT_EQ(third.valid_labels, 0U);
  EXPECT_FALSE(third.labels) << "it has no label that could count";
  const PartShape none =
      shape_of_part({8}, {model::PartIndex(0), 7}, LossMask(std::span<const LearnedInterval>()));
  EXPECT_EQ(none.labels, (std::vector<LabelInterval>()));
}

TEST(RecordCut, CountsWhatARuleDoesToLongRecords) {
  OverLengthCounts counts;
  for (const std::uint32_t tokens : {0U, 9U, 10U, 11U, 25U}) {
    for (const OverLength over_length :
         {OverLength::kSplit, OverLength::kTruncate, OverLength::kDrop}) {
      counts.add({10, over_length}, tokens);
    }
  }
  EXPECT_EQ(counts, (OverLengthCounts{.split_records = 2,
                                      .truncated_records = 2,
                                      .truncated_tokens = 16,
                                      .dropped_records = 2,
                                      .dropped_tokens = 36}));
  OverLengthCounts twice = counts;
  twice += counts;
  EXPECT_EQ(twice.dropped_tokens, 72U);
  EXPECT_EQ(twice.truncated_tokens, 32U);
  EXPECT_EQ(twice.split_records + twice.truncated_records + twice.dropped_records, 12U);
  EXPECT_EQ(part_count({10, OverLength::kDrop}, 11), 0U);
  EXPECT_EQ(used_tokens({10, OverLength::kDrop}, 10), 10U);
}

TEST(RecordCut, TensorsGoWithTheirTokens) {
  const std::vector<std::uint32_t> tokens(10, 1);
  const std::vector<RecordTensor> tensors = {{0, {}, {}}, {3, {}, {}}, {4, {}, {}}, {9, {}, {}}};
  const RecordContent record{TokenSpan(tokens), {}, tensors};
  const auto count = [&](const CutRule& rule, std::uint32_t part) {
    return cut_part(rule, record, model::PartIndex(part)).value().tensors.size();
  };
  EXPECT_EQ(count({4}, 0), 2U);
  EXPECT_EQ(count({4}, 1), 1U);
  EXPECT_EQ(count({4}, 2), 1U);
  EXPECT_EQ(count({4, OverLength::kTruncate}, 0), 2U);
}

TEST(RecordCut, RefusesWhatItCannotCut) {
  const std::vector<std::uint32_t> tokens(5, 1);
  RecordContent record{TokenSpan(tokens), {}, {}};
  const auto error = [&](const CutRule& rule, std::uint32_t part) {
    return cut_part(rule, record, model::PartIndex(part)).status().to_string();
  };
  EXPECT_THAT(error({0}, 0), HasSubstr("max_sample_tokens of 0"));
  EXPECT_THAT(error({2}, 3), HasSubstr("part 3 of a record that gives 3: 5 tokens"));
  EXPECT_THAT(error({2, OverLength::kDrop}, 0), HasSubstr("gives 0"));
  const std::vector<std::vector<LearnedInterval>> wrong = {
      {{2, 2}}, {{4, 6}}, {{0, 2}, {2, 3}}, {{3, 4}, {0, 1}}};
  for (const auto& mask : wrong) {
    record.mask = mask;
    EXPECT_THAT(error({2}, 0), HasSubstr("invalid: a loss mask with tokens"));
  }
  record.mask = std::nullopt;
  const std::vector<RecordTensor> tensors = {{3, {}, {}}, {1, {}, {}}};
  record.tensors = tensors;
  EXPECT_THAT(error({2}, 0), HasSubstr("not in the order of their tokens"));
}

TEST(RecordCut, NamesOfPolicies) {
  EXPECT_EQ(to_string(OverLength::kTruncate), "truncate");
  EXPECT_THAT(over_length_names(), testing::ElementsAre("split", "truncate", "drop"));
}

}  // namespace
}  // namespace batchloom::construction
