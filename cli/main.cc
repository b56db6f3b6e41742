// SPDX-License-Identifier: Apache-2.0
// The `batchloom` command.
#include <fmt/format.h>

#include <cstdio>

#include "batchloom/base/freed_memory.h"
#include "batchloom/base/real_runtime.h"
#include "cli/commands.h"

namespace batchloom::cli {
namespace {

void complain(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
}

int give(const Answer& answer) {
  print(answer.out);
  complain(answer.err);
  return answer.exit_code;
}

int execute(const Command& command) {
  const std::unique_ptr<Runtime> runtime = make_real_runtime();
  const Status done = std::visit([&](const auto& args) { return run(args, *runtime); }, command);
  if (done.is_ok()) return kDone;
  std::fflush(stdout);  // What was found out comes before the verdict, where both go to one place.
  complain(fmt::format("batchloom: {}\n", done.to_string()));
  return kFailed;
}

int main_of(std::span<const char* const> args) {
  keep_freed_memory();
  const auto parsed = parse_args(args, BATCHLOOM_VERSION);
  const Command* command = std::get_if<Command>(&parsed);
  const int code = command != nullptr ? execute(*command) : give(std::get<Answer>(parsed));
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  complain("batchloom: stdout could not be written: results are missing\n");
  return kFailed;
}

}  // namespace
}  // namespace batchloom::cli

int main(int argc, char** argv) {
  return batchloom::cli::main_of(std::span(argv, static_cast<std::size_t>(argc)));
}
