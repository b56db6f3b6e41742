// SPDX-License-Identifier: Apache-2.0
// Rows of RGB from one size to another, in exact integer arithmetic: the same on every host.
//
// Each axis by itself, from n pixels to m. Where it shrinks (m < n) an output pixel is the average
// of the area that it covers; input pixels count by the part of them that lies in it:
//
//   output i covers [i * n, (i + 1) * n) in units of 1/m input pixel; weights sum to n
//
// Where it grows (m > n) it is interpolated linearly between the two input pixels whose centres lie
// around its own; beyond the outermost centres their pixels go on:
//
//   the centre of output i is at ((2i + 1) * n - m) / 2m input pixels; weights sum to 2m
//
// Nothing is rounded between the axes: one division by the product of both sums, to the nearest,
// halves up, ends it. So a constant picture stays what it is, equal sizes change nothing, a mean is
// kept but for the rounding of each pixel where a picture shrinks, and one that is mirrored or
// transposed first gives the same as one that is so afterwards.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "batchloom/sources/picture.h"

namespace batchloom::sources {

/// A longer side cannot be resampled to: sums of a row would not fit 32 bits.
inline constexpr std::uint32_t kMaxResampledSidePx = 1 << 22;

/// How the pixels of one side become those of another.
class ResampledAxis {
 public:
  /// Preconditions: `from` is 1 to kMaxPictureSidePx, `to` is 1 to kMaxResampledSidePx.
  ResampledAxis(std::uint32_t from, std::uint32_t to);

  /// What makes one output pixel: weights()[first_weight ..] of the inputs [first, first + count).
  struct Tap {
    std::uint32_t first;
    std::uint32_t count;
    std::size_t first_weight;
  };

  const std::vector<Tap>& taps() const { return taps_; }
  std::span<const std::uint32_t> weights(const Tap& tap) const {
    return std::span(weights_).subspan(tap.first_weight, tap.count);
  }
  /// What the weights of each tap sum to.
  std::uint32_t sum() const { return sum_; }
  /// Whether it grows: then a tap is of one or two inputs.
  bool interpolates() const { return interpolates_; }

 private:
  void average(std::uint64_t from, std::uint64_t to);
  void interpolate(std::uint64_t from, std::uint64_t to);

  std::vector<Tap> taps_;
  std::vector<std::uint32_t> weights_;
  std::uint32_t sum_;
  bool interpolates_;
};

/// Takes the rows of a picture from the top down and writes each output row as soon as it can: what
/// it holds is two rows, whatever the picture's height. One thread at a time.
class Resampler {
 public:
  /// Preconditions: those of ResampledAxis, and out.size() is 3 for each pixel of `to`. `out`
  /// outlives it.
  Resampler(const PictureSize& from, const PictureSize& to, std::span<std::byte> out);

  /// The next row: 3 bytes for each pixel of its width. After the last one all of `out` is written.
  void add(ByteSpan row);

 private:
  void resample_row(ByteSpan row);
  void add_weighted(std::span<const std::uint32_t> row, std::uint32_t weight);
  void write_row();

  const ResampledAxis across_;
  const ResampledAxis down_;
  const std::uint64_t sum_;         // Of the weights of one output pixel.
  const std::uint64_t reciprocal_;  // Of it: see kQuickSum.
  const std::size_t input_bytes_;   // Of a row that comes.
  std::span<std::byte> out_;
  std::uint32_t next_input_ = 0;
  std::size_t next_output_ = 0;
  std::vector<std::uint32_t> above_;  // Rows after the first axis: the last but one,
  std::vector<std::uint32_t> row_;    // and the last.
  std::vector<std::uint64_t> sums_;   // Of the output row that is not complete.
};

}  // namespace batchloom::sources
