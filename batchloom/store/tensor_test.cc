// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/tensor.h"

#include <gtest/gtest.h>

namespace batchloom::store {
namespace {

TensorInfo tensor_of(std::vector<std::uint32_t> shape, TensorType type = TensorType::kU8) {
  return {.name = "pixels", .type = type, .shape = std::move(shape)};
}

void expect_invalid(const TensorInfo& info, std::string_view reason) {
  const auto size = tensor_bytes(info);
  ASSERT_TRUE(size.is(ErrorKind::kInvalid));
  EXPECT_NE(size.status().message().find(reason), std::string_view::npos)
      << size.status().message();
}

TEST(Tensor, ItsBytesAreElementsTimesTheirSize) {
  EXPECT_EQ(tensor_bytes(tensor_of({3, 4, 5})).value(), 60U);
  EXPECT_EQ(tensor_bytes(tensor_of({3, 4}, TensorType::kF16)).value(), 24U);
  EXPECT_EQ(tensor_bytes(tensor_of({3, 4}, TensorType::kBf16)).value(), 24U);
  EXPECT_EQ(tensor_bytes(tensor_of({3}, TensorType::kI32)).value(), 12U);
  EXPECT_EQ(tensor_bytes(tensor_of({3}, TensorType::kF32)).value(), 12U);
  EXPECT_EQ(tensor_bytes(tensor_of({3}, TensorType::kI64)).value(), 24U);
}

TEST(Tensor, WithoutDimensionsItIsOneElement) {
  EXPECT_EQ(tensor_bytes(tensor_of({}, TensorType::kI64)).value(), 8U);
}

TEST(Tensor, MayFillARunAndNoMore) {
  EXPECT_EQ(tensor_bytes(tensor_of({UINT32_MAX})).value(), UINT32_MAX);
  expect_invalid(tensor_of({UINT32_MAX}, TensorType::kF16), "more than 4294967295 bytes");
  expect_invalid(tensor_of(std::vector<std::uint32_t>(8, UINT32_MAX)), "more than");
}

TEST(Tensor, RulesAreNamed) {
  TensorInfo info = tensor_of({2});
  info.name.clear();
  expect_invalid(info, "a tensor's name has 0 bytes");
  info.name.assign(64, 'x');
  expect_invalid(info, "a tensor's name has 64 bytes");
  expect_invalid(tensor_of(std::vector<std::uint32_t>(9, 1)), "'pixels' has 9 dimensions");
  expect_invalid(tensor_of({2, 0}), "'pixels' has a dimension of 0 elements");
  expect_invalid(tensor_of({2}, static_cast<TensorType>(6)), "the unknown type 6");
}

}  // namespace
}  // namespace batchloom::store
