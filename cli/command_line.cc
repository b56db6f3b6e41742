// SPDX-License-Identifier: Apache-2.0
#include "cli/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <list>
#include <sstream>
#include <utility>
#include <vector>

#include "batchloom/base/quantity.h"
#include "batchloom/base/spelling.h"

namespace batchloom::cli {
namespace {

void refuse_unless_ok(const Status& status) {
  if (status.is_ok()) return;
  throw CLI::ValidationError(std::string(status.message()), CLI::ExitCodes::ValidationError);
}

std::string unknown(const CLI::App& app, const std::string& word) {
  const bool is_option = word.starts_with("-");
  std::vector<std::string> known;
  if (is_option) {
    for (const CLI::Option* option : app.get_options()) {
      for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
    }
  } else {
    for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
      known.push_back(sub->get_name());
    }
  }
  const std::string_view sort = is_option       ? "unknown option"
                                : known.empty() ? "unexpected argument"
                                                : "unknown command";
  const std::string name = word.substr(0, word.find('='));
  const auto hint = nearest_spelling(name, known);
  return fmt::format("{} {}{}", sort, name,
                     hint ? fmt::format("; did you mean {}?", *hint) : std::string());
}

/// What is wrong, and where help is to be had. `reason` is the parser's own.
Answer usage(const CLI::App& top, const std::string& reason) {
  const CLI::App* app = &top;
  std::string path = app->get_name();
  while (!app->get_subcommands().empty()) {
    app = app->get_subcommands().front();
    path += " " + app->get_name();
  }
  const std::vector<std::string> extras = top.remaining(true);
  const std::string problem = extras.empty() ? reason : unknown(*app, extras.front());
  return {.exit_code = kUsage,
          .out = {},
          .err = fmt::format("{}: {}\nRun `{} --help`.\n", path, problem, path)};
}

}  // namespace

struct Options::Impl {
  CLI::App& app;
  CLI::Option* last = nullptr;
  std::vector<std::function<Status()>> checks = {};
};

Options::Options(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Options::~Options() = default;
Options::Options(Options&&) noexcept = default;

Options& Options::argument(const std::string& name, const std::string& help,
                           const std::function<Status(const std::string&)>& use) {
  return text(name, "", help, use).required();
}

Options& Options::text(const std::string& name, const std::string& type, const std::string& help,
                       const std::function<Status(const std::string&)>& use) {
  const auto take = [use](const std::string& value) { refuse_unless_ok(use(value)); };
  impl_->last = impl_->app.add_option_function<std::string>(name, take, help)->type_name(type);
  return *this;
}

Options& Options::number(const std::string& name, const std::string& help,
                         const std::function<void(std::uint64_t)>& use, Range range) {
  return text(name, "N", help, [=](const std::string& text) {
    const auto value = parse_number(text);
    if (!value || *value < range.least || *value > range.most) {
      return Status::invalid(fmt::format("{}: '{}' is not a whole number from {} to {}", name, text,
                                         range.least, range.most));
    }
    use(*value);
    return Status::ok();
  });
}

Options& Options::bytes(const std::string& name, const std::string& help,
                        const std::function<void(std::uint64_t)>& use) {
  return text(name, "BYTES", help, [=](const std::string& text) {
    const auto value = parse_bytes(text);
    if (!value) {
      return Status::invalid(
          fmt::format("{}: '{}' is no size; write 4096, 64KiB, 256MiB or 2GiB", name, text));
    }
    use(*value);
    return Status::ok();
  });
}

Options& Options::duration(const std::string& name, const std::string& help,
                           const std::function<void(Duration)>& use) {
  return text(name, "TIME", help, [=](const std::string& text) {
    const auto value = parse_duration(text);
    if (!value) {
      return Status::invalid(
          fmt::format("{}: '{}' is no time; write 200ms, 5s or 10min", name, text));
    }
    use(*value);
    return Status::ok();
  });
}

Options& Options::flag(const std::string& name, const std::string& help, bool& value) {
  impl_->last = impl_->app.add_flag(name, value, help);
  return *this;
}

Options& Options::required() {
  impl_->last->required();
  return *this;
}

Options& Options::excludes(const std::string& other) {
  impl_->last->excludes(impl_->app.get_option(other));
  return *this;
}

Options& Options::needs(const std::string& other) {
  impl_->last->needs(impl_->app.get_option(other));
  return *this;
}

Options& Options::check(const std::function<Status()>& verdict) {
  impl_->checks.push_back(verdict);
  return *this;
}

struct CommandLine::Impl {
  CLI::App app;
  std::list<Options> commands = {};
};

CommandLine::CommandLine(std::string_view version) : impl_(std::make_unique<Impl>()) {
  impl_->app.name("batchloom");
  impl_->app.description("A training data plane for large foundation models.");
  impl_->app.set_help_flag("--help", "print this help");
  impl_->app.set_version_flag("--version", fmt::format("batchloom {}", version),
                              "print the version");
  impl_->app.require_subcommand(1);
}

CommandLine::~CommandLine() = default;

void CommandLine::group(const std::string& name, const std::string& help) {
  impl_->app.add_subcommand(name, help)->require_subcommand(1);
}

Options& CommandLine::command(const std::string& group, const std::string& name,
                              const std::string& help, const std::function<void()>& chosen) {
  CLI::App& above = group.empty() ? impl_->app : *impl_->app.get_subcommand(group);
  CLI::App& app = *above.add_subcommand(name, help);
  auto options = std::make_unique<Options::Impl>(Options::Impl{.app = app});
  app.callback([&checks = options->checks, chosen] {
    for (const std::function<Status()>& verdict : checks) refuse_unless_ok(verdict());
    chosen();
  });
  return impl_->commands.emplace_back(std::move(options));
}

std::optional<Answer> CommandLine::parse(std::span<const char* const> args) {
  CLI::App& app = impl_->app;
  try {
    app.parse(static_cast<int>(args.size()), args.data());
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) return usage(app, error.what());
    std::ostringstream out;
    app.exit(error, out, out);
    return Answer{.exit_code = kDone, .out = out.str(), .err = {}};
  }
}

}  // namespace batchloom::cli
