// SPDX-License-Identifier: Apache-2.0
// The few operations on files that LocalStore is made of, so that a fake disk can stand below it.
//
// What is missing is a value, and so is what is there already. Errors of every call:
//   `exhausted`    the disk, a quota or the table of open files is full;
//   `invalid`      no permission, or a file stands where a folder should be;
//   `corruption`   a folder, a pipe, a link or a device stands where a file should be;
//   `not_found`    the folder above the path is missing;
//   `unavailable`  everything else, EIO first of all.
// An error had no effect, except that after `unavailable` the call may have taken effect. Messages
// name the operation, the path and the reason.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "batchloom/base/bytes.h"
#include "batchloom/base/status.h"

namespace batchloom::objstore {

/// A file being written that has no name in the store yet. The destructor discards it unless it was
/// placed. One thread at a time.
class TempFile {
 public:
  virtual ~TempFile() = default;

  /// Appends the concatenation of `parts`, all of it.
  virtual Status write(std::span<const ByteSpan> parts) = 0;

  /// Makes the bytes written so far durable (fdatasync). After an error they may never become so,
  /// whatever a second call would say: discard the file.
  virtual Status sync_data() = 0;

  /// Gives the file the name `path`: true; false where anything has that name. The name is durable
  /// only after Folder::sync(). At most one of link() and replace() is called, once.
  virtual Result<bool> link(const std::string& path) = 0;

  /// Gives the file the name `path`, in one step taking it from what had it, if anything. A folder
  /// of that name is `corruption`; `not_found` where the temporary folder or that of `path` is
  /// gone: then it may be called again. Durable only after Folder::sync().
  virtual Status replace(const std::string& path) = 0;
};

/// A file open for reading; readable to its end even if its name is removed meanwhile.
/// Thread-safe.
class ReadFile {
 public:
  virtual ~ReadFile() = default;

  virtual Result<std::uint64_t> size_bytes() = 0;

  /// Fills `out` from `offset` on; the count is short only at the end of the file.
  virtual Result<std::size_t> read(std::uint64_t offset, std::span<std::byte> out) = 0;
};

/// A link to a folder is a folder. Any other link, whatever it leads to, a pipe, a socket and a
/// device are kOther.
enum class EntryKind : std::uint8_t { kFile, kFolder, kOther };

struct FolderEntry {
  std::string name;
  EntryKind kind = EntryKind::kFile;
};

/// An open folder. One thread at a time.
class Folder {
 public:
  virtual ~Folder() = default;

  /// Makes all names in the folder durable (fsync): those given, replaced and removed by anybody up
  /// to now. After an error some may never become so, whatever a second call would say.
  virtual Status sync() = 0;

  /// The next entry in no order, without "." and ".."; nullopt at the end.
  virtual Result<std::optional<FolderEntry>> next() = 0;
};

/// A lock that is held until destruction, or until the process dies.
class FileLock {
 public:
  virtual ~FileLock() = default;
};

/// A file system. Thread-safe. Every call can block for as long as the disk does.
class FileOps {
 public:
  virtual ~FileOps() = default;

  /// A new empty file that lives in `temp_folder` until it is placed. It must be on the same file
  /// system as the places. After a crash it may be left behind there: see sweep_temp().
  virtual Result<std::unique_ptr<TempFile>> open_temp(const std::string& temp_folder) = 0;

  /// Null where nothing has that name. Follows no link that has it, and waits for no pipe.
  virtual Result<std::unique_ptr<ReadFile>> open_read(const std::string& path) = 0;

  /// Null where there is no folder of that name.
  virtual Result<std::unique_ptr<Folder>> open_folder(const std::string& path) = 0;

  /// The file's size in bytes; nullopt where nothing has that name. Follows no link that has it.
  virtual Result<std::optional<std::uint64_t>> file_size(const std::string& path) = 0;

  /// True: the name was removed, whatever had it but a folder; false: there was none. Durable only
  /// after Folder::sync().
  virtual Result<bool> unlink(const std::string& path) = 0;

  /// True: made; false: a folder or a file has that name. Durable only after the sync() of the
  /// folder above.
  virtual Result<bool> make_folder(const std::string& path) = 0;

  /// True: removed; false: something is in it, or there is no folder of that name. Temporary files
  /// without a name do not count as something: see TempFile::replace().
  virtual Result<bool> remove_folder(const std::string& path) = 0;

  /// The exclusive lock of the file `path`, which is made where missing and never removed; null
  /// where somebody, in this process or another, holds it. Does not wait.
  virtual Result<std::unique_ptr<FileLock>> try_lock(const std::string& path) = 0;

  /// Removes a file that open_temp() left behind: true; false where its writer lives or it is gone.
  virtual Result<bool> sweep_temp(const std::string& path) = 0;
};

/// `corruption`: `path` is `what` ("a pipe") and no plain file.
Status not_a_file(std::string_view path, std::string_view what);

/// The Status for errno value `error` of `operation` on `path`; see the list at the top.
Status file_error(int error, std::string_view operation, std::string_view path);

}  // namespace batchloom::objstore
