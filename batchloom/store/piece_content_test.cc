// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/piece_content.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

namespace batchloom::store {
namespace {

using Labels = std::vector<LabelInterval>;

/// A sample of the 2-byte tokens 100, 101, ... that is followed by the next one.
class PieceContentTest : public testing::Test {
 protected:
  static constexpr std::uint32_t kTokens = 10;

  PieceContentTest() {
    for (std::uint16_t i = 0; i < kTokens; ++i) {
      store_le(static_cast<std::uint16_t>(100 + i), &tokens_[2 * std::size_t{i}]);
    }
    content_.tokens = tokens_;
    content_.next_token = 110;
  }

  Status check() const { return check_content(sample_, TokenWidth::k16, content_); }
  PieceContent cut(std::uint32_t lo, std::uint32_t hi) const {
    return cut_piece({model::SampleIndex(0), lo, hi}, TokenWidth::k16, content_);
  }
  void set_labels(Labels labels, std::uint32_t valid) {
    content_.labels = std::move(labels);
    sample_.valid_labels = valid;
  }
  void add_tensor(std::uint32_t token, std::uint32_t elements) {
    content_.tensors.push_back({.token = token,
                                .info = {"t", TensorType::kU8, {elements}},
                                .bytes = data_.first(elements)});
  }
  void expect_invalid(std::string_view reason) const {
    const Status status = check();
    ASSERT_TRUE(status.is(ErrorKind::kInvalid)) << reason;
    EXPECT_NE(status.message().find(reason), std::string_view::npos) << status.message();
  }

  Bytes tokens_ = Bytes(2 * kTokens);
  Bytes bytes_ = Bytes(16, std::byte{7});
  ByteSpan data_ = bytes_;
  model::PlanSample sample_{.id = {}, .tokens = kTokens, .valid_labels = kTokens};
  SampleContent content_;
};

TEST_F(PieceContentTest, ASampleThatIsWhole) {
  EXPECT_TRUE(check().is_ok()) << check().to_string();
  content_.next_token.reset();
  sample_.valid_labels = kTokens - 1;
  EXPECT_TRUE(check().is_ok()) << check().to_string();
}

TEST_F(PieceContentTest, TokensAreAsManyAsPlanned) {
  content_.tokens = content_.tokens.first(19);  // The last id is cut short.
  expect_invalid("has 19 bytes of tokens; 10 ids of 2 bytes make 20");
  content_.tokens = content_.tokens.first(18);
  expect_invalid("has 18 bytes");
}

TEST_F(PieceContentTest, TheNextTokenFitsItsWidth) {
  content_.next_token = 65'536;
  expect_invalid("is followed by token 65536");
  content_.next_token = 65'535;
  EXPECT_TRUE(check().is_ok());
}

TEST_F(PieceContentTest, LabelsAddUpToThePlans) {
  sample_.valid_labels = 9;
  expect_invalid("counts 10 labels of 10, the plan says 9");
  set_labels({{0, 3}, {4, 6}}, 4);
  expect_invalid("counts 5 labels of 10, the plan says 4");
  set_labels({{0, 3}, {4, 6}}, 5);
  EXPECT_TRUE(check().is_ok());
  set_labels({}, 0);
  EXPECT_TRUE(check().is_ok());
}

TEST_F(PieceContentTest, LabelIntervalsAscendApartAndExist) {
  set_labels({{3, 3}}, 0);
  expect_invalid("counts labels [3, 3) of 10");
  set_labels({{4, 2}}, 0);
  expect_invalid("counts labels [4, 2)");
  set_labels({{0, 3}, {3, 6}}, 6);
  expect_invalid("counts labels [3, 6) after [0, 3)");
  set_labels({{4, 6}, {0, 3}}, 5);
  expect_invalid("counts labels [0, 3) after [4, 6)");
  set_labels({{9, 11}}, 2);
  expect_invalid("counts labels [9, 11) of 10");
  content_.next_token.reset();  // Then label 9 does not exist.
  set_labels({{9, 10}}, 1);
  expect_invalid("counts labels [9, 10) of 9");
}

TEST_F(PieceContentTest, TensorsBelongToTokensInOrder) {
  add_tensor(10, 4);
  expect_invalid("tensor 't' belongs to token 10; expected one of [0, 10)");
  content_.tensors.clear();
  add_tensor(5, 4);
  add_tensor(4, 4);
  expect_invalid("tensor 't' belongs to token 4; expected one of [5, 10)");
  content_.tensors[1].token = 5;
  EXPECT_TRUE(check().is_ok());
  content_.tensors[1].bytes = data_.first(3);
  expect_invalid("tensor 't' has 3 bytes, its shape makes 4");
  content_.tensors[1].info.shape = {0};
  expect_invalid("a dimension of 0");
}

TEST_F(PieceContentTest, APieceBorrowsItsTokensAndKnowsTheOneAfter) {
  const PieceContent piece = cut(2, 5);
  EXPECT_EQ(piece.tokens.data(), tokens_.data() + 4);
  EXPECT_EQ(piece.tokens.size(), 6U);
  EXPECT_EQ(piece.next_token, 105U);
  EXPECT_EQ(cut(5, 10).next_token, 110U);
  content_.next_token.reset();
  EXPECT_EQ(cut(5, 10).next_token, std::nullopt);
  EXPECT_EQ(cut(5, 9).next_token, 109U);
}

TEST_F(PieceContentTest, LabelsAreCutAndCountFromThePiece) {
  set_labels({{0, 3}, {4, 6}, {8, 10}}, 7);
  EXPECT_EQ(cut(0, 10).labels, (Labels{{0, 3}, {4, 6}, {8, 10}}));
  EXPECT_EQ(cut(1, 5).labels, (Labels{{0, 2}, {3, 4}}));
  EXPECT_EQ(cut(3, 4).labels, Labels{});
  EXPECT_FALSE(cut(3, 4).all_labels);
  EXPECT_EQ(cut(5, 9).labels, (Labels{{0, 1}, {3, 4}}));
}

TEST_F(PieceContentTest, AMaskThatIsAllOnesIsNone) {
  EXPECT_TRUE(cut(0, 10).all_labels);
  set_labels({{0, 3}}, 3);
  EXPECT_TRUE(cut(0, 3).all_labels);
  EXPECT_TRUE(cut(0, 3).labels.empty());
  EXPECT_FALSE(cut(0, 4).all_labels);
  content_.next_token.reset();
  set_labels({{7, 9}}, 2);
  EXPECT_TRUE(cut(7, 10).all_labels) << "label 9 does not exist";
  EXPECT_TRUE(cut(9, 10).all_labels) << "none exists";
}

TEST_F(PieceContentTest, ATensorGoesToThePieceOfItsToken) {
  add_tensor(0, 1);
  add_tensor(4, 2);
  add_tensor(4, 3);
  add_tensor(9, 4);
  EXPECT_EQ(cut(0, 4).tensors.size(), 1U);
  const PieceContent middle = cut(4, 9);
  ASSERT_EQ(middle.tensors.size(), 2U);
  EXPECT_EQ(middle.tensors[0].bytes.size(), 2U);
  EXPECT_EQ(middle.tensors[1].bytes.size(), 3U);
  EXPECT_EQ(cut(9, 10).tensors.size(), 1U);
}

}  // namespace
}  // namespace batchloom::store
