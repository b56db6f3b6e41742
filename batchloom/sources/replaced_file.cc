// SPDX-License-Identifier: Apache-2.0
#include "batchloom/sources/replaced_file.h"

#include <fmt/format.h>

#include <span>
#include <utility>

namespace batchloom::sources {
namespace {

constexpr std::size_t kWriteBytes = std::size_t{1} << 20;
constexpr std::string_view kTempFolder = ".blidx.tmp";
/// Each is lost only to another writer that ends in the same moment.
constexpr int kTempFolderTurns = 100;

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

/// Removes what writers that died have left. That it can be done is not necessary.
void sweep(objstore::FileOps& files, const std::string& folder) {
  const auto opened = files.open_folder(folder);
  if (!opened.is_ok() || *opened == nullptr) return;
  for (;;) {
    const auto entry = (*opened)->next();
    if (!entry.is_ok() || !entry->has_value()) return;
    static_cast<void>(files.sweep_temp(folder + "/" + (*entry)->name).is_ok());
  }
}

}  // namespace

Result<std::unique_ptr<ReplacedFile>> ReplacedFile::create(objstore::FileOps& files,
                                                           std::string path) {
  std::unique_ptr<ReplacedFile> replaced(new ReplacedFile(files, std::move(path)));
  BL_RETURN_IF_ERROR(replaced->in_temp_folder([&](const std::string& temp) {
    auto file = files.open_temp(temp);
    if (file.is_ok()) replaced->file_ = *std::move(file);
    return file.status();
  }));
  return replaced;
}

Status ReplacedFile::make_temp_folder(const std::string& temp) {
  Result<bool> made = files_.make_folder(temp);
  if (made.is(ErrorKind::kNotFound)) {
    if (const auto above = files_.make_folder(folder_of(path_)); !above.is_ok()) {
      return above.status();
    }
    made = files_.make_folder(temp);
  }
  BL_RETURN_IF_ERROR(made.status());
  if (!*made) sweep(files_, temp);
  return Status::ok();
}

Status ReplacedFile::in_temp_folder(const std::function<Status(const std::string& temp)>& use) {
  const std::string temp = fmt::format("{}/{}", folder_of(path_), kTempFolder);
  Status used;
  for (int turn = 0; turn < kTempFolderTurns; ++turn) {
    BL_RETURN_IF_ERROR(make_temp_folder(temp));
    used = use(temp);
    if (!used.is(ErrorKind::kNotFound)) break;  // Else a writer that had ended removed it.
  }
  return used;
}

void ReplacedFile::leave_temp_folder() {
  file_ = nullptr;
  const std::string temp = fmt::format("{}/{}", folder_of(path_), kTempFolder);
  static_cast<void>(files_.remove_folder(temp).is_ok());  // Not while others have names in it.
}

Status ReplacedFile::put(ByteSpan bytes) {
  written_bytes_ += bytes.size();
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  return buffer_.size() < kWriteBytes ? Status::ok() : flush();
}

Status ReplacedFile::flush() {
  const ByteSpan bytes = buffer_;
  BL_RETURN_IF_ERROR(file_->write(std::span(&bytes, 1)));
  buffer_.clear();
  return Status::ok();
}

Status ReplacedFile::finish() {
  BL_RETURN_IF_ERROR(flush());
  BL_RETURN_IF_ERROR(file_->sync_data());
  BL_RETURN_IF_ERROR(in_temp_folder([this](const std::string&) { return file_->replace(path_); }));
  BL_ASSIGN_OR_RETURN(const auto folder, files_.open_folder(folder_of(path_)));
  return folder != nullptr ? folder->sync() : Status::ok();
}

}  // namespace batchloom::sources
