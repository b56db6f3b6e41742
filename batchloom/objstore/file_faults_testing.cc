// SPDX-License-Identifier: Apache-2.0
#include "batchloom/objstore/file_faults_testing.h"

#include <cerrno>
#include <utility>

namespace batchloom::objstore {

std::string_view operation_of(FileCall call) {
  constexpr std::array<std::string_view, kFileCalls> kOperations = {"open a file in",
                                                                    "write",
                                                                    "sync",
                                                                    "link",
                                                                    "rename a new file to",
                                                                    "open",
                                                                    "look at",
                                                                    "read",
                                                                    "open",
                                                                    "sync the folder",
                                                                    "list",
                                                                    "look at",
                                                                    "remove",
                                                                    "make the folder",
                                                                    "lock",
                                                                    "sweep"};
  return kOperations.at(static_cast<std::size_t>(call));
}

void FileFaults::fail_call(std::uint64_t index, FileFault fault) {
  const MutexLock lock(mutex_);
  failing_call_ = calls_ + index;
  call_fault_ = fault;
}

void FileFaults::fail_from(std::uint64_t index, const std::vector<FileCall>& kinds,
                           FileFault fault) {
  const MutexLock lock(mutex_);
  kind_faults_from_ = calls_ + index;
  for (const FileCall kind : kinds) kind_faults_[kind] = fault;
}

void FileFaults::fail_every(FileCall kind, FileFault fault) {
  const MutexLock lock(mutex_);
  kind_faults_[kind] = fault;
}

void FileFaults::clear() {
  const MutexLock lock(mutex_);
  failing_call_.reset();
  kind_faults_.clear();
  kind_faults_from_ = 0;
}

void FileFaults::before_call(std::function<void(FileCall, const std::string&)> hook) {
  const MutexLock lock(mutex_);
  hook_ = std::move(hook);
}

std::uint64_t FileFaults::calls() const {
  const MutexLock lock(mutex_);
  return calls_;
}

std::uint64_t FileFaults::calls(FileCall kind) const {
  const MutexLock lock(mutex_);
  return calls_by_kind_.at(static_cast<std::size_t>(kind));
}

std::uint64_t FileFaults::met() const {
  const MutexLock lock(mutex_);
  return met_;
}

FileFault FileFaults::meet(FileCall kind, const std::string& path) {
  std::function<void(FileCall, const std::string&)> hook;
  {
    const MutexLock lock(mutex_);
    hook = hook_;
  }
  if (hook) hook(kind, path);

  const MutexLock lock(mutex_);
  ++calls_by_kind_.at(static_cast<std::size_t>(kind));
  const std::uint64_t index = calls_++;
  if (is_off_) return {.error = EIO};
  FileFault fault;
  if (failing_call_ == index) {
    fault = call_fault_;
  } else if (const auto found = kind_faults_.find(kind);
             found != kind_faults_.end() && index >= kind_faults_from_) {
    fault = found->second;
  }
  if (fault.error != 0) ++met_;
  is_off_ = fault.power_off;
  return fault;
}

bool FileFaults::is_off() const {
  const MutexLock lock(mutex_);
  return is_off_;
}

void FileFaults::power_on() {
  const MutexLock lock(mutex_);
  is_off_ = false;
}

}  // namespace batchloom::objstore
