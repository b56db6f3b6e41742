// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "batchloom/base/status.h"

namespace batchloom::store {

/// Part of the format: never renumber.
enum class TensorType : std::uint8_t { kU8 = 0, kI32 = 1, kI64 = 2, kF16 = 3, kBf16 = 4, kF32 = 5 };

/// Bytes of one element; 0 for a type that is none of those above.
std::size_t element_bytes(TensorType type);

/// What a tensor's bytes are: row-major, little-endian.
struct TensorInfo {
  std::string name;  ///< "pixels", say: 1 to 63 bytes.
  TensorType type = TensorType::kU8;
  std::vector<std::uint32_t> shape;  ///< Elements along each dimension; at most 8, none 0.
  friend bool operator==(const TensorInfo&, const TensorInfo&) = default;
};

/// A tensor that goes with a token of a piece.
struct PieceTensor {
  std::uint32_t token = 0;  ///< Relative to the piece.
  TensorInfo info;
  friend bool operator==(const PieceTensor&, const PieceTensor&) = default;
};

/// What the tensor of a picture is called: u8, of shape [rows, side, columns, side, 3] for a grid
/// of rows x columns square cells. So its bytes are those of height x width x 3 pixels, and
/// rows x columns tokens stand for it, from its own on.
inline constexpr std::string_view kPictureTensor = "image";

inline constexpr std::size_t kTensorNameMaxBytes = 63;
inline constexpr std::size_t kTensorMaxDimensions = 8;
/// No tensor is larger: it must fit into a run.
inline constexpr std::uint64_t kTensorMaxBytes = UINT32_MAX;

/// Bytes of the whole tensor; those of one element where there are no dimensions. `invalid`, naming
/// the tensor, where `info` breaks a rule above or the tensor would be too large.
Result<std::uint64_t> tensor_bytes(const TensorInfo& info);

}  // namespace batchloom::store
