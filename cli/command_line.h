// SPDX-License-Identifier: Apache-2.0
// The words of a command line: commands in groups, and their options. Only command_line.cc knows by
// which library they are parsed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "batchloom/base/runtime.h"

namespace batchloom::cli {

/// An exit code of the process.
enum ExitCode : int { kDone = 0, kFailed = 1, kUsage = 2 };

/// Parsing was all there was to do: help, the version, or a wrong command line.
struct Answer {
  ExitCode exit_code = kDone;
  std::string out;  ///< For stdout.
  std::string err;  ///< For stderr.
};

struct Range {
  std::uint64_t least = 0;
  std::uint64_t most = UINT64_MAX;
};

/// The options of one command, declared one after the other. Each `use` is given the value where
/// the option stands on the command line; an error of it is wrong usage. One thread at a time.
class Options {
 public:
  struct Impl;
  explicit Options(std::unique_ptr<Impl> impl);
  ~Options();
  Options(Options&&) noexcept;

  /// A word without a name; it must be there.
  Options& argument(const std::string& name, const std::string& help,
                    const std::function<Status(const std::string&)>& use);
  /// Any text, which the help calls `type`.
  Options& text(const std::string& name, const std::string& type, const std::string& help,
                const std::function<Status(const std::string&)>& use);
  /// A decimal number in `range`.
  Options& number(const std::string& name, const std::string& help,
                  const std::function<void(std::uint64_t)>& use, Range range = {});
  /// "64MiB"; see batchloom/base/quantity.h.
  Options& bytes(const std::string& name, const std::string& help,
                 const std::function<void(std::uint64_t)>& use);
  /// "200ms"; see batchloom/base/quantity.h.
  Options& duration(const std::string& name, const std::string& help,
                    const std::function<void(Duration)>& use);
  /// True where it is given.
  Options& flag(const std::string& name, const std::string& help, bool& value);

  // About the option that was declared last.
  Options& required();
  Options& excludes(const std::string& other);
  Options& needs(const std::string& other);

  /// Asked after all options were read; an error is wrong usage.
  Options& check(const std::function<Status()>& verdict);

 private:
  std::unique_ptr<Impl> impl_;
};

/// All commands. Parses once.
class CommandLine {
 public:
  /// `version` is what --version says.
  explicit CommandLine(std::string_view version);
  ~CommandLine();

  /// A word that commands may stand below.
  void group(const std::string& name, const std::string& help);
  /// A command below `group`, or at the top where that is empty. `chosen` is called where the
  /// command line asks for it. Valid as long as this object.
  Options& command(const std::string& group, const std::string& name, const std::string& help,
                   const std::function<void()>& chosen);

  /// nullopt where a command was chosen. `args` are those of main(), the program's name first.
  std::optional<Answer> parse(std::span<const char* const> args);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace batchloom::cli
