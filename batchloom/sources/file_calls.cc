// SPDX-License-Identifier: Apache-2.0
#include "batchloom/sources/file_calls.h"

namespace batchloom::sources {

std::string_view to_string(FileCallStage stage) {
  switch (stage) {
    case FileCallStage::kLook: return "looking at";
    case FileCallStage::kOpenIndex: return "opening the index of";
    case FileCallStage::kRead: return "reading";
  }
  return "";
}

FileCalls::Mark::Mark(FileCalls* calls, FileCallStage stage, std::string_view path)
    : calls_(calls) {
  if (calls_ == nullptr) return;
  const MutexLock lock(calls_->mutex_);
  number_ = calls_->next_++;
  calls_->out_.push_back({.number = number_, .stage = stage, .path = path});
}

FileCalls::Mark::~Mark() {
  if (calls_ == nullptr) return;
  const MutexLock lock(calls_->mutex_);
  std::erase_if(calls_->out_, [&](const Out& out) { return out.number == number_; });
}

std::vector<FileCall> FileCalls::out() const {
  const MutexLock lock(mutex_);
  std::vector<FileCall> calls;
  for (const Out& out : out_) {
    calls.push_back({.number = out.number, .stage = out.stage, .path = std::string(out.path)});
  }
  return calls;
}

}  // namespace batchloom::sources
