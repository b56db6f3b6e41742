// SPDX-License-Identifier: Apache-2.0
#include "cli/step_log.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <string_view>
#include <utility>

#include "batchloom/objstore/file_ops.h"
#include "batchloom/simulator/synthetic.h"
#include "cli/commands.h"
#include "cli/content_sum.h"

namespace batchloom::cli {
namespace {

Fields describe(const client::StepBatch& batch) {
  const std::uint64_t hash =
      simulator::content_hash({batch.global_valid_labels, batch.micro_batches, batch.events});
  Fields fields;
  fields.add("step", batch.step.value)
      .add("hash", fmt::format("{:016x}", hash))
      .add("sum", fmt::format("{:016x}", content_sum(batch.micro_batches, batch.token_width)))
      .add("bytes", batch.payload_bytes());
  return fields;
}

}  // namespace

Result<StepLog> StepLog::open(const std::string& name, bool json) {
  if (name.empty() || name == "-") return StepLog(name, json, objstore::Fd(-1));
  objstore::Fd file = objstore::Fd::open(name, O_WRONLY | O_CREAT | O_APPEND);
  if (!file.is_open()) return objstore::file_error(errno, "open", name);
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
  // One write, but where a disk becomes full it takes a part, and the next one says why.
  for (std::string_view rest = line; !rest.empty();) {
    const ssize_t written =
        objstore::retry_interrupted([&] { return write(file_.get(), rest.data(), rest.size()); });
    if (written < 0) return objstore::file_error(errno, "write", name_);
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
  return Status::ok();
}

}  // namespace batchloom::cli
