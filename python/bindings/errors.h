// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <string>
#include <utility>

#include "batchloom/base/status.h"

namespace batchloom::python {

/// An error on its way to Python, where it becomes the exception of its kind.
class StatusError final : public std::exception {
 public:
  /// Precondition: not ok.
  explicit StatusError(Status status) : status_(std::move(status)), text_(status_.message()) {}

  const Status& status() const { return status_; }
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  Status status_;
  std::string text_;
};

/// Throws where `status` is an error.
inline void or_raise(const Status& status) {
  if (!status.is_ok()) throw StatusError(status);
}

/// The value, or the error, thrown.
template <class T>
T or_raise(Result<T> result) {
  or_raise(result.status());
  return std::move(result).value();
}

}  // namespace batchloom::python
