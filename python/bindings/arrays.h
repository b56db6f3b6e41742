// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "batchloom/base/bytes.h"
#include "batchloom/client/picture_spans.h"
#include "batchloom/store/batch_layout.h"
#include "batchloom/store/tensor.h"

namespace nanobind __attribute__((visibility("hidden"))) {
  class object;
}

namespace batchloom::python {

/// What arrays are made for.
enum class Framework : std::uint8_t { kNumpy, kTorch };

/// What the bytes of an array lie in; each array keeps it alive.
using Owner = std::shared_ptr<const void>;

/// A one-dimensional array of the framework over `values`, without a copy.
nanobind::object make_array(Framework framework, std::span<std::int32_t> values, Owner owner);
nanobind::object make_array(Framework framework, std::span<std::int64_t> values, Owner owner);

/// Stored token ids as a read-only NumPy array of uint16 or uint32, without a copy.
nanobind::object make_ids(ByteSpan ids, store::TokenWidth width, Owner owner);

/// A picture as an array of the framework, [height, width, 3] of uint8, without a copy.
nanobind::object make_picture(Framework framework, const client::PictureSpan& picture, Owner owner);

/// A stored tensor as a read-only NumPy array, without a copy; bf16, which NumPy lacks, as uint16.
nanobind::object make_tensor(const store::TensorInfo& info, ByteSpan bytes, Owner owner);

}  // namespace batchloom::python
