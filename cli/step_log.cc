// SPDX-License-Identifier: Apache-2.0
#include "cli/step_log.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "batchloom/simulator/synthetic.h"
#include "cli/commands.h"
#include "cli/content_sum.h"

namespace batchloom::cli {
namespace {

Status failed(const std::string& name, std::string_view operation) {
  return Status::invalid(fmt::format("{}: {}: {}", name, operation, std::strerror(errno)));
}

Fields describe(const client::StepBatch& batch) {
  Fields fields;
  fields.add("step", batch.step.value)
      .add("hash", fmt::format("{:016x}", simulator::content_hash(batch.micro_batches)))
      .add("sum", fmt::format("{:016x}", content_sum(batch.micro_batches, batch.token_width)))
      .add("bytes", batch.payload_bytes());
  return fields;
}

}  // namespace

Result<StepLog> StepLog::open(const std::string& name, bool json) {
  if (name.empty() || name == "-") return StepLog(name, json, objstore::Fd(-1));
  objstore::Fd file = objstore::Fd::open(name, O_WRONLY | O_CREAT | O_APPEND);
  if (!file.is_open()) return failed(name, "open");
  return StepLog(name, json, std::move(file));
}

Status StepLog::add(const client::StepBatch& batch) {
  if (name_.empty()) return Status::ok();
  const Fields fields = describe(batch);
  if (name_ == "-") {
    print_row(fields, json_);
    std::fflush(stdout);
    return Status::ok();
  }
  const std::string line = (json_ ? fields.to_json() : fields.to_line()) + "\n";
  const ssize_t written =
      objstore::retry_interrupted([&] { return write(file_.get(), line.data(), line.size()); });
  if (written == static_cast<ssize_t>(line.size())) return Status::ok();
  return failed(name_, "write");
}

}  // namespace batchloom::cli
