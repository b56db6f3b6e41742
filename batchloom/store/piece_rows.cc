// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/piece_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "batchloom/base/check.h"
#include "batchloom/store/batch_object_generated.h"

namespace batchloom::store {
namespace {

constexpr std::uint32_t kAllLabels = 1;
constexpr std::uint32_t kHasNextToken = 2;

}  // namespace

std::uint32_t encode_flags(const PieceFacts& facts) {
  return (facts.all_labels ? kAllLabels : 0) | (facts.has_next_token ? kHasNextToken : 0);
}

Result<PieceFacts> decode_facts(const Origin& origin, const void* row, std::uint32_t tokens,
                                std::uint32_t flags, const PieceFacts& counts_and_crc) {
  if (flags > (kAllLabels | kHasNextToken)) {
    return origin.corrupt(row, fmt::format("a piece with the unknown flags {}", flags));
  }
  PieceFacts facts = counts_and_crc;
  facts.all_labels = (flags & kAllLabels) != 0;
  facts.has_next_token = (flags & kHasNextToken) != 0;
  // Intervals hold a label each and lie apart.
  const std::uint64_t labels = existing_labels(tokens, facts.has_next_token);
  const std::uint64_t most = facts.all_labels ? 0 : (labels + 1) / 2;
  if (facts.label_intervals > most) {
    return origin.corrupt(row, fmt::format("a piece of {} tokens with {} label intervals; at most "
                                           "{} are possible",
                                           tokens, facts.label_intervals, most));
  }
  return facts;
}

flatbuffers::Offset<TableVector<fb::Tensor>> encode_tensors(flatbuffers::FlatBufferBuilder& builder,
                                                            std::span<const PieceTensor> tensors) {
  std::vector<flatbuffers::Offset<fb::Tensor>> rows;
  rows.reserve(tensors.size());
  for (const PieceTensor& tensor : tensors) {
    const auto name = builder.CreateSharedString(tensor.info.name);
    const auto shape = builder.CreateVector(tensor.info.shape);
    rows.push_back(fb::CreateTensor(builder, tensor.token,
                                    static_cast<std::uint8_t>(tensor.info.type), name, shape));
  }
  return builder.CreateVector(rows);
}

Result<std::vector<PieceTensor>> decode_tensors(const Origin& origin,
                                                const TableVector<fb::Tensor>& rows) {
  std::vector<PieceTensor> tensors;
  tensors.reserve(rows.size());
  for (const fb::Tensor* row : rows) {
    // Many rows may share one name and one shape: neither may be long.
    if (row->name()->size() > kTensorNameMaxBytes || row->shape()->size() > kTensorMaxDimensions) {
      return origin.corrupt(row, fmt::format("a tensor with a name of {} bytes and {} dimensions",
                                             row->name()->size(), row->shape()->size()));
    }
    PieceTensor& tensor = tensors.emplace_back();
    tensor.token = row->token();
    tensor.info.name = row->name()->str();
    tensor.info.type = static_cast<TensorType>(row->type());
    tensor.info.shape.assign(row->shape()->begin(), row->shape()->end());
    const auto size_bytes = tensor_bytes(tensor.info);
    if (!size_bytes.is_ok()) return origin.corrupt(row, size_bytes.status().message());
  }
  return tensors;
}

Status check_tensor_tokens(const Origin& origin, const void* row, std::uint32_t tokens,
                           std::span<const PieceTensor> tensors) {
  std::uint32_t least = 0;
  for (const PieceTensor& tensor : tensors) {
    if (tensor.token < least || tensor.token >= tokens) {
      return origin.corrupt(row, fmt::format("a tensor of token {}; expected one of [{}, {})",
                                             tensor.token, least, tokens));
    }
    least = tensor.token;
  }
  return Status::ok();
}

std::uint64_t encoded_bound(std::span<const PieceTensor> tensors) {
  constexpr std::uint64_t kTensorRowBytes = 64;  // Table, offsets, lengths and padding.
  std::uint64_t bound = 64;
  for (const PieceTensor& tensor : tensors) {
    bound += kTensorRowBytes + tensor.info.name.size() + 4 * tensor.info.shape.size();
  }
  return bound;
}

std::vector<std::uint64_t> tensor_sizes(std::span<const PieceTensor> tensors) {
  std::vector<std::uint64_t> sizes;
  sizes.reserve(tensors.size());
  for (const PieceTensor& tensor : tensors) {
    const auto size_bytes = tensor_bytes(tensor.info);
    BL_CHECK(size_bytes.is_ok(), size_bytes.status().to_string());
    sizes.push_back(*size_bytes);
  }
  return sizes;
}

}  // namespace batchloom::store
