// SPDX-License-Identifier: Apache-2.0
// libFuzzer's input is tried as a file of lengths of each kind: text, CSV by a column's name and by
// its number, JSON Lines, and Megatron's index. Whatever it is, there are lengths in it, or it is
// refused by name.
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "batchloom/objstore/posix_fd.h"
#include "batchloom/simulator/length_files.h"
#include "tests/fuzz/fuzzing.h"

namespace batchloom::simulator {
namespace {

/// Of a folder that this process made.
class LengthsFolder {
 public:
  LengthsFolder() { BL_CHECK(mkdtemp(path_.data()) != nullptr, path_); }
  ~LengthsFolder() {
    for (const std::string& file : written_) unlink(file.c_str());
    rmdir(path_.c_str());
  }
  LengthsFolder(const LengthsFolder&) = delete;
  LengthsFolder& operator=(const LengthsFolder&) = delete;

  std::string write(const std::string& name, ByteSpan bytes) {
    std::string path = path_ + "/" + name;
    const objstore::Fd file = objstore::Fd::open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    BL_CHECK(file.is_open(), path);
    BL_CHECK(::write(file.get(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()),
             path);
    if (std::ranges::find(written_, path) == written_.end()) written_.push_back(path);
    return path;
  }

 private:
  std::string path_ = std::filesystem::temp_directory_path() / "fuzz_lengths.XXXXXX";
  std::vector<std::string> written_;
};

const sources::Tokenizer& bytes_tokenizer() {
  static const auto tokenizer = sources::make_bytes_tokenizer({.vocab = 256}).value();
  return *tokenizer;
}

void attempt(const LengthFile& file) {
  const auto lengths = read_lengths(file);
  if (!lengths.is_ok()) {
    fuzz::check_refusal(lengths.status());
    BL_CHECK(lengths.status().message().starts_with(file.path), lengths.status().to_string());
    return;
  }
  BL_CHECK(!lengths->empty(), "no lengths, and no error");
  BL_CHECK(std::ranges::find(*lengths, 0U) == lengths->end(), "a length of 0");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static LengthsFolder folder;
  const ByteSpan input = fuzz::input_bytes(data, size);
  attempt({.path = folder.write("x.txt", input)});
  const std::string csv = folder.write("x.csv", input);
  for (const char* column : {"", "tokens", "2"}) attempt({.path = csv, .column = column});
  attempt({.path = folder.write("x.idx", input)});
  attempt({.path = folder.write("x.jsonl", input), .tokenizer = &bytes_tokenizer()});
  return 0;
}

}  // namespace batchloom::simulator
