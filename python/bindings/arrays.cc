// SPDX-License-Identifier: Apache-2.0
#include "python/bindings/arrays.h"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <array>
#include <utility>
#include <vector>

namespace batchloom::python {
namespace {

namespace nb = nanobind;

nb::capsule capsule_of(Owner owner) {
  auto held = std::make_unique<Owner>(std::move(owner));
  nb::capsule capsule(held.get(), [](void* p) noexcept { delete static_cast<Owner*>(p); });
  static_cast<void>(held.release());
  return capsule;
}

template <class T>
nb::object array_of(Framework framework, std::span<T> values, Owner owner) {
  const nb::capsule held = capsule_of(std::move(owner));
  if (framework == Framework::kTorch) {
    return nb::cast(nb::ndarray<nb::pytorch, T, nb::ndim<1>>(values.data(), {values.size()}, held));
  }
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(values.data(), {values.size()}, held));
}

nb::object read_only(ByteSpan bytes, std::span<const std::size_t> shape, nb::dlpack::dtype type,
                     Owner owner) {
  return nb::cast(nb::ndarray<nb::numpy, nb::ro>(bytes.data(), shape.size(), shape.data(),
                                                 capsule_of(std::move(owner)), nullptr, type));
}

nb::dlpack::dtype dtype_of(store::TensorType type) {
  switch (type) {
    case store::TensorType::kU8: return nb::dtype<std::uint8_t>();
    case store::TensorType::kI32: return nb::dtype<std::int32_t>();
    case store::TensorType::kI64: return nb::dtype<std::int64_t>();
    case store::TensorType::kF16:
      return {static_cast<std::uint8_t>(nb::dlpack::dtype_code::Float), 16, 1};
    case store::TensorType::kBf16: return nb::dtype<std::uint16_t>();
    case store::TensorType::kF32: return nb::dtype<float>();
  }
  return nb::dtype<std::uint8_t>();
}

}  // namespace

nb::object make_array(Framework framework, std::span<std::int32_t> values, Owner owner) {
  return array_of(framework, values, std::move(owner));
}

nb::object make_array(Framework framework, std::span<std::int64_t> values, Owner owner) {
  return array_of(framework, values, std::move(owner));
}

nb::object make_ids(ByteSpan ids, store::TokenWidth width, Owner owner) {
  const std::size_t size = ids.size() / store::token_bytes(width);
  const auto type =
      width == store::TokenWidth::k16 ? nb::dtype<std::uint16_t>() : nb::dtype<std::uint32_t>();
  return read_only(ids, {&size, 1}, type, std::move(owner));
}

nb::object make_picture(Framework framework, const client::PictureSpan& picture, Owner owner) {
  const std::array<std::size_t, 3> shape = {picture.height_px, picture.width_px, 3};
  const auto type = nb::dtype<std::uint8_t>();
  if (framework == Framework::kNumpy) {
    return read_only(picture.pixels, shape, type, std::move(owner));
  }
  // torch has no read-only tensors.
  auto* pixels = const_cast<std::byte*>(picture.pixels.data());
  return nb::cast(nb::ndarray<nb::pytorch>(pixels, shape.size(), shape.data(),
                                           capsule_of(std::move(owner)), nullptr, type));
}

nb::object make_tensor(const store::TensorInfo& info, ByteSpan bytes, Owner owner) {
  const std::vector<std::size_t> shape(info.shape.begin(), info.shape.end());
  return read_only(bytes, shape, dtype_of(info.type), std::move(owner));
}

}  // namespace batchloom::python
