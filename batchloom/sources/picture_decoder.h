// SPDX-License-Identifier: Apache-2.0
// A picture that is being decoded, row by row. libjpeg appears in jpeg_decoder.cc only, libpng in
// png_decoder.cc.
#pragma once

#include <memory>

#include "batchloom/sources/picture.h"

namespace batchloom::sources {

/// One picture. Calls come in this order: size, start, read for every row, finish. After an error
/// only the destructor follows. One thread at a time; the encoded bytes outlive it.
///
/// Both libraries leave a failed call by longjmp. So each call of theirs is made by a lambda within
/// a function that has called setjmp, and neither the lambda nor our callbacks hold anything that
/// has a destructor: nothing that is left behind is skipped. An exception would have to pass
/// through frames of C, which nobody promises to be able to unwind.
class PictureDecoder {
 public:
  PictureDecoder() = default;
  virtual ~PictureDecoder() = default;
  PictureDecoder(const PictureDecoder&) = delete;
  PictureDecoder& operator=(const PictureDecoder&) = delete;

  /// What the header says: within the limits of picture.h.
  virtual PictureSize size() const = 0;

  /// Begins to decode for somebody who wants `target`. Gives the size of the rows to come: size(),
  /// or a smaller one that is no smaller than `target` on either side.
  virtual Result<PictureSize> start(const PictureSize& target) = 0;

  /// Precondition: row.size() is 3 times the width that start() gave.
  virtual Status read(std::span<std::byte> row) = 0;

  /// Looks at what lies between the last row and the picture's end.
  virtual Status finish() = 0;
};

/// Reads the header; errors as of picture_size().
Result<std::unique_ptr<PictureDecoder>> open_jpeg(ByteSpan encoded);
Result<std::unique_ptr<PictureDecoder>> open_png(ByteSpan encoded);

/// `corruption` unless a picture may have this size.
Status check_picture_size(std::uint64_t width_px, std::uint64_t height_px);

}  // namespace batchloom::sources
