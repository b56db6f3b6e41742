// SPDX-License-Identifier: Apache-2.0
#include "batchloom/simulator/input_file.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include "batchloom/objstore/file_ops.h"

namespace batchloom::simulator {

Result<InputFile> InputFile::open(std::string path) {
  objstore::Fd file = objstore::Fd::open(path, O_RDONLY);
  if (file.is_open()) return InputFile(std::move(path), std::move(file));
  if (errno == ENOENT) return Status::not_found(fmt::format("{}: there is no such file", path));
  return objstore::file_error(errno, "open", path);
}

Result<std::size_t> InputFile::read(std::span<std::byte> out) {
  std::size_t done = 0;
  while (done < out.size()) {
    const ssize_t count = objstore::retry_interrupted(
        [&] { return ::read(file_.get(), out.data() + done, out.size() - done); });
    if (count < 0) return objstore::file_error(errno, "read", path_);
    if (count == 0) break;
    done += static_cast<std::size_t>(count);
  }
  return done;
}

Result<std::uint64_t> InputFile::size_bytes() const {
  struct stat about{};
  if (fstat(file_.get(), &about) != 0) return objstore::file_error(errno, "stat", path_);
  return static_cast<std::uint64_t>(about.st_size);
}

Result<std::string> read_text_file(const std::string& path, std::size_t most_bytes) {
  BL_ASSIGN_OR_RETURN(InputFile file, InputFile::open(path));
  std::string text(most_bytes + 1, '\0');
  BL_ASSIGN_OR_RETURN(const std::size_t size,
                      file.read(std::as_writable_bytes(std::span(text.data(), text.size()))));
  if (size > most_bytes) {
    return Status::invalid(
        fmt::format("{}: larger than the {} bytes that such a file may have", path, most_bytes));
  }
  text.resize(size);
  return text;
}

}  // namespace batchloom::simulator
