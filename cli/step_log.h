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
  /// `name` is a path, "-" for stdout, or empty for no log. Errors: those of file_ops.h.
  static Result<StepLog> open(const std::string& name, bool json);

  /// step, hash (simulator::content_hash), sum (content_sum) and bytes of the payload. Errors as of
  /// file_ops.h: `exhausted` for a full disk. The file may then end with a part of a line.
  Status add(const client::StepBatch& batch);

 private:
  StepLog(std::string name, bool json, objstore::Fd file)
      : name_(std::move(name)), json_(json), file_(std::move(file)) {}

  std::string name_;
  bool json_;
  objstore::Fd file_;
};

}  // namespace batchloom::cli
