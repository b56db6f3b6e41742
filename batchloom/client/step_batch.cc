// SPDX-License-Identifier: Apache-2.0
#include "batchloom/client/step_batch.h"

#include <array>

#include "batchloom/base/hash.h"

namespace batchloom::client {

std::uint64_t StepBatch::payload_bytes() const {
  std::uint64_t bytes = 0;
  for (const store::RunMicroBatch& micro_batch : micro_batches) {
    for (const store::RunPiece& piece : micro_batch.pieces) {
      bytes += piece.tokens.size() + piece.next_token.size();
      bytes += piece.labels.size() * store::kLabelIntervalBytes;
      for (const store::RunPiece::Tensor& tensor : piece.tensors) bytes += tensor.bytes.size();
    }
  }
  return bytes;
}

std::uint64_t next_samples_hash(std::uint64_t before, std::uint64_t samples_digest) {
  std::array<std::byte, 16> walk;
  store_le(before, walk.data());
  store_le(samples_digest, walk.data() + 8);
  return xxh3_64(walk);
}

}  // namespace batchloom::client
