// SPDX-License-Identifier: Apache-2.0
#include "batchloom/sources/python_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "batchloom/base/mutex.h"
#include "batchloom/sources/python_worker.h"

namespace batchloom::sources {
namespace {

using Worker = std::unique_ptr<PythonWorker>;

class PythonTokenizer final : public BatchTokenizer {
 public:
  PythonTokenizer(TokenSettings settings, PythonFunction function, PythonOptions options)
      : BatchTokenizer(std::move(settings)),
        function_(std::move(function)),
        options_(std::move(options)) {}

  std::string_view kind() const override { return "python"; }
  std::string_view name() const override { return function_.name; }
  std::uint64_t max_text_bytes() const override { return kMaxPythonBytes; }

  Result<std::vector<EncodedText>> encode_batch(const TextBatch& batch,
                                                const CallOptions& call) const override {
    BL_ASSIGN_OR_RETURN(Worker worker, take());
    auto encoded = worker->encode(batch, settings().vocab, call);
    if (encoded.is_ok()) keep(std::move(worker));
    return encoded;
  }

  Status start(std::uint32_t threads) const override {
    for (std::uint32_t i = 0; i < threads; ++i) {
      BL_ASSIGN_OR_RETURN(Worker worker, PythonWorker::start(function_, options_));
      keep(std::move(worker));
    }
    return Status::ok();
  }

  void stop() const override {
    std::vector<Worker> ended;
    const MutexLock lock(mutex_);
    ended.swap(idle_);
  }

 private:
  std::uint64_t model_digest() const override { return function_.digest; }

  Result<Worker> take() const {
    {
      const MutexLock lock(mutex_);
      if (!idle_.empty()) {
        Worker worker = std::move(idle_.back());
        idle_.pop_back();
        return worker;
      }
    }
    return PythonWorker::start(function_, options_);
  }
  void keep(Worker worker) const {
    const MutexLock lock(mutex_);
    idle_.push_back(std::move(worker));
  }

  const PythonFunction function_;
  const PythonOptions options_;
  mutable Mutex mutex_;
  mutable std::vector<Worker> idle_ BL_GUARDED_BY(mutex_);
};

bool is_identifier(std::string_view name) {
  const auto is_letter = [](unsigned char c) {
    return c == '_' || c >= 0x80 || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  };
  const auto follows = [&](unsigned char c) { return is_letter(c) || (c >= '0' && c <= '9'); };
  return !name.empty() && is_letter(static_cast<unsigned char>(name.front())) &&
         std::ranges::all_of(name, follows);
}

/// Identifiers with dots between them.
bool is_dotted_name(std::string_view name) {
  while (true) {
    const std::size_t dot = name.find('.');
    if (!is_identifier(name.substr(0, dot))) return false;
    if (dot == std::string_view::npos) return true;
    name.remove_prefix(dot + 1);
  }
}

}  // namespace

Status check_function_name(std::string_view name) {
  const std::size_t colon = name.find(':');
  if (colon != std::string_view::npos && is_dotted_name(name.substr(0, colon)) &&
      is_dotted_name(name.substr(colon + 1))) {
    return Status::ok();
  }
  return Status::invalid(
      fmt::format("'{}' names no function of Python: say \"module:function\"", name));
}

Result<std::unique_ptr<Tokenizer>> make_python_tokenizer(TokenSettings settings,
                                                         PythonFunction function,
                                                         PythonOptions options) {
  BL_RETURN_IF_ERROR(check_token_settings(settings));
  BL_RETURN_IF_ERROR(check_function_name(function.name));
  return std::unique_ptr<Tokenizer>(std::make_unique<PythonTokenizer>(
      std::move(settings), std::move(function), std::move(options)));
}

}  // namespace batchloom::sources
