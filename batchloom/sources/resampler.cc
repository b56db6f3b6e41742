// SPDX-License-Identifier: Apache-2.0
#include "batchloom/sources/resampler.h"

#include <algorithm>

#include "batchloom/base/check.h"

namespace batchloom::sources {
namespace {

/// Up to this divisor d, x / d is x * (2^55 / d + 1) >> 55 for each x < 256 * d, and several times
/// as quick: before it is cut off that is too large by at most x / 2^55, which is below 1 / d.
constexpr std::uint64_t kQuickSum = std::uint64_t{1} << 23;
constexpr int kReciprocalBits = 55;

}  // namespace

ResampledAxis::ResampledAxis(std::uint32_t from, std::uint32_t to)
    : sum_(to > from ? 2 * to : from), interpolates_(to > from) {
  BL_CHECK(from >= 1 && from <= kMaxPictureSidePx, "a side of no picture");
  BL_CHECK(to >= 1 && to <= kMaxResampledSidePx, "a side that sums do not fit");
  taps_.reserve(to);
  interpolates_ ? interpolate(from, to) : average(from, to);
}

void ResampledAxis::average(std::uint64_t from, std::uint64_t to) {
  for (std::uint64_t i = 0; i < to; ++i) {
    const std::uint64_t begin = i * from;
    const std::uint64_t end = begin + from;
    const std::uint64_t first = begin / to;
    const std::uint64_t last = (end - 1) / to;
    taps_.push_back({.first = static_cast<std::uint32_t>(first),
                     .count = static_cast<std::uint32_t>(last - first + 1),
                     .first_weight = weights_.size()});
    for (std::uint64_t input = first; input <= last; ++input) {
      const std::uint64_t covered = std::min(end, (input + 1) * to) - std::max(begin, input * to);
      weights_.push_back(static_cast<std::uint32_t>(covered));
    }
  }
}

void ResampledAxis::interpolate(std::uint64_t from, std::uint64_t to) {
  for (std::uint64_t i = 0; i < to; ++i) {
    // From the first input's centre, which may lie to the right of the first outputs'.
    const std::uint64_t end = (2 * i + 1) * from;
    const std::uint64_t centre = end > to ? end - to : 0;
    const std::uint64_t first = std::min(centre / sum_, from - 1);
    const auto right = static_cast<std::uint32_t>(first == from - 1 ? 0 : centre % sum_);
    taps_.push_back({.first = static_cast<std::uint32_t>(first),
                     .count = right == 0 ? 1U : 2U,
                     .first_weight = weights_.size()});
    weights_.push_back(sum_ - right);
    if (right > 0) weights_.push_back(right);
  }
}

Resampler::Resampler(const PictureSize& from, const PictureSize& to, std::span<std::byte> out)
    : across_(from.width_px, to.width_px),
      down_(from.height_px, to.height_px),
      sum_(std::uint64_t{across_.sum()} * down_.sum()),
      reciprocal_((std::uint64_t{1} << kReciprocalBits) / sum_ + 1),
      input_bytes_(std::size_t{3} * from.width_px),
      out_(out),
      above_(std::size_t{3} * to.width_px),
      row_(above_.size()),
      sums_(above_.size()) {
  BL_CHECK(out.size() == above_.size() * to.height_px, "pixels of another size");
}

void Resampler::add(ByteSpan row) {
  BL_CHECK(row.size() == input_bytes_, "a row of another picture");
  std::swap(above_, row_);
  resample_row(row);
  const std::uint32_t y = next_input_++;
  for (; next_output_ < down_.taps().size(); ++next_output_) {
    const ResampledAxis::Tap& tap = down_.taps()[next_output_];
    const std::span<const std::uint32_t> weights = down_.weights(tap);
    const bool complete = y == tap.first + tap.count - 1;
    if (down_.interpolates()) {
      // Several outputs may lie between two inputs: each is made when it has both of them.
      if (!complete) return;
      if (tap.count == 2) add_weighted(above_, weights[0]);
      add_weighted(row_, weights.back());
    } else {
      if (y < tap.first) return;
      add_weighted(row_, weights[y - tap.first]);
      if (!complete) return;
    }
    write_row();
  }
}

void Resampler::resample_row(ByteSpan row) {
  std::uint32_t* out = row_.data();
  for (const ResampledAxis::Tap& tap : across_.taps()) {
    const std::byte* pixel = &row[std::size_t{3} * tap.first];
    std::uint32_t red = 0;
    std::uint32_t green = 0;
    std::uint32_t blue = 0;
    for (const std::uint32_t weight : across_.weights(tap)) {
      red += weight * std::to_integer<std::uint32_t>(pixel[0]);
      green += weight * std::to_integer<std::uint32_t>(pixel[1]);
      blue += weight * std::to_integer<std::uint32_t>(pixel[2]);
      pixel += 3;
    }
    *out++ = red;
    *out++ = green;
    *out++ = blue;
  }
}

void Resampler::add_weighted(std::span<const std::uint32_t> row, std::uint32_t weight) {
  for (std::size_t i = 0; i < row.size(); ++i) sums_[i] += std::uint64_t{weight} * row[i];
}

void Resampler::write_row() {
  std::byte* const out = &out_[next_output_ * sums_.size()];
  const std::uint64_t half = sum_ / 2;
  if (sum_ <= kQuickSum) {
    for (std::size_t i = 0; i < sums_.size(); ++i) {
      out[i] = static_cast<std::byte>((sums_[i] + half) * reciprocal_ >> kReciprocalBits);
    }
  } else {
    for (std::size_t i = 0; i < sums_.size(); ++i) {
      out[i] = static_cast<std::byte>((sums_[i] + half) / sum_);
    }
  }
  std::ranges::fill(sums_, 0);
}

}  // namespace batchloom::sources
