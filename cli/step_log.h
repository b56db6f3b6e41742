// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "batchloom/client/step_batch.h"
#include "batchloom/objstore/posix_fd.h"

namespace batchloom::cli {

/// What each step held: a line per step on stdout, or at the end of a file. One write per line, so
/// that no line is lost with the process. One thread at a time.
class StepLog {
 public:
  /// `name` is a path, "-" for stdout, or empty for no log. `invalid` where the file cannot be
  /// opened.
  static Result<StepLog> open(const std::string& name, bool json);

  /// step, hash (simulator::content_hash), sum (content_sum) and bytes of the payload.
  Status add(const client::StepBatch& batch);

 private:
  StepLog(std::string name, bool json, objstore::Fd file)
      : name_(std::move(name)), json_(json), file_(std::move(file)) {}

  std::string name_;
  bool json_;
  objstore::Fd file_;
};

}  // namespace batchloom::cli
