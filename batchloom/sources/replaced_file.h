// SPDX-License-Identifier: Apache-2.0
// A file beside shards that is written in one pass, and seen as a whole or not at all.
//
//  1. The bytes go to a temporary file in a folder .blidx.tmp beside the file. Left-overs of
//     writers that died are removed from there, and the folder by whoever is the last to need it.
//     One who comes or finishes while another removes it makes it again.
//  2. finish() makes them durable and renames the file: whoever opens it finds the old one or the
//     new one. Of several writers the last one wins.
//  3. After an error, or without finish(), nothing is left.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "batchloom/base/bytes.h"
#include "batchloom/base/status.h"
#include "batchloom/objstore/file_ops.h"

namespace batchloom::sources {

/// One thread at a time. Calls block for as long as the disk does. Errors are those of
/// objstore/file_ops.h, and name neither file nor purpose: the caller does. After one, all that is
/// left is to destroy the writer.
class ReplacedFile {
 public:
  /// Makes the folder of `path` where it is missing, but none above. `files` must outlive it.
  static Result<std::unique_ptr<ReplacedFile>> create(objstore::FileOps& files, std::string path);
  ~ReplacedFile() { leave_temp_folder(); }
  ReplacedFile(const ReplacedFile&) = delete;
  ReplacedFile& operator=(const ReplacedFile&) = delete;

  /// Appends, by way of a buffer.
  Status put(ByteSpan bytes);
  /// With what is in the buffer.
  std::uint64_t written_bytes() const { return written_bytes_; }
  /// Call it once, at the end.
  Status finish();

 private:
  ReplacedFile(objstore::FileOps& files, std::string path)
      : files_(files), path_(std::move(path)) {}

  /// Does `use`, again where the temporary folder was gone.
  Status in_temp_folder(const std::function<Status(const std::string& temp)>& use);
  Status make_temp_folder(const std::string& temp);
  void leave_temp_folder();
  Status flush();

  objstore::FileOps& files_;
  const std::string path_;
  std::unique_ptr<objstore::TempFile> file_;
  std::uint64_t written_bytes_ = 0;
  Bytes buffer_;
};

}  // namespace batchloom::sources
