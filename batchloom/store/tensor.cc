// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/tensor.h"

#include <fmt/format.h>

namespace batchloom::store {

std::size_t element_bytes(TensorType type) {
  switch (type) {
    case TensorType::kU8: return 1;
    case TensorType::kF16:
    case TensorType::kBf16: return 2;
    case TensorType::kI32:
    case TensorType::kF32: return 4;
    case TensorType::kI64: return 8;
  }
  return 0;
}

Result<std::uint64_t> tensor_bytes(const TensorInfo& info) {
  if (info.name.empty() || info.name.size() > kTensorNameMaxBytes) {
    return Status::invalid(fmt::format("a tensor's name has {} bytes; 1 to {} are allowed",
                                       info.name.size(), kTensorNameMaxBytes));
  }
  if (info.shape.size() > kTensorMaxDimensions) {
    return Status::invalid(fmt::format("tensor '{}' has {} dimensions, at most {} are allowed",
                                       info.name, info.shape.size(), kTensorMaxDimensions));
  }
  std::uint64_t size = element_bytes(info.type);
  if (size == 0) {
    return Status::invalid(fmt::format("tensor '{}' has elements of the unknown type {}", info.name,
                                       static_cast<unsigned>(info.type)));
  }
  for (const std::uint32_t elements : info.shape) {
    if (elements == 0) {
      return Status::invalid(fmt::format("tensor '{}' has a dimension of 0 elements", info.name));
    }
    size *= elements;  // Below 2^64: both are below 2^32.
    if (size > kTensorMaxBytes) {
      return Status::invalid(
          fmt::format("tensor '{}' has more than {} bytes", info.name, kTensorMaxBytes));
    }
  }
  return size;
}

}  // namespace batchloom::store
