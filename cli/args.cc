// SPDX-License-Identifier: Apache-2.0
#include "cli/args.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <sstream>
#include <utility>
#include <vector>

#include "batchloom/objstore/probe.h"
#include "batchloom/store/keys.h"
#include "cli/hint.h"

namespace batchloom::cli {
namespace {

[[noreturn]] void refuse(const std::string& what) {
  throw CLI::ValidationError(what, CLI::ExitCodes::ValidationError);
}

void refuse_unless_ok(const Status& status) {
  if (!status.is_ok()) refuse(std::string(status.message()));
}

/// So that the last seed of a run is a number too.
constexpr std::uint64_t kMostSeeds = std::uint64_t{1} << 62;
constexpr std::uint64_t kMostJobs = 1024;
/// The probe holds that many for each of its racers.
constexpr std::uint64_t kMostProbeBytes = std::uint64_t{256} << 20;

struct Range {
  std::uint64_t least = 0;
  std::uint64_t most = UINT64_MAX;
};

/// An option that takes text, which the help calls `type`; `use` is given it, and may refuse.
template <class Use>
CLI::Option* add_text(CLI::App& app, const std::string& name, const std::string& type,
                      const std::string& help, const Use& use) {
  return app.add_option_function<std::string>(name, use, help)->type_name(type);
}

/// An option that takes a decimal number in `range`; `use` is given it.
template <class Use>
CLI::Option* add_number(CLI::App& app, const std::string& name, const std::string& help,
                        const Use& use, Range range = {}) {
  return add_text(app, name, "N", help, [=](const std::string& text) {
    std::uint64_t value = 0;
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, value);
    const bool is_number = error == std::errc() && rest == end;
    if (!is_number || value < range.least || value > range.most) {
      refuse(fmt::format("{}: '{}' is not a whole number from {} to {}", name, text, range.least,
                         range.most));
    }
    use(value);
  });
}

/// URL, --fsync and --json, as all commands on a stream have them.
void add_stream_args(CLI::App& app, StreamArgs& stream) {
  add_text(app, "URL", "", "where the stream lies: ./dir, /abs/dir or file:///abs/dir",
           [&stream](const std::string& url) {
             const Result<std::string> folder = parse_store_url(url);
             refuse_unless_ok(folder.status());
             stream.location.url = url;
             stream.location.folder = *folder;
           })
      ->required();
  add_text(app, "--fsync", "always|none",
           "always (default): what was written survives a power cut; none: faster",
           [&stream](const std::string& policy) {
             if (policy != "always" && policy != "none") {
               refuse(fmt::format("--fsync: '{}' is neither always nor none", policy));
             }
             stream.location.fsync =
                 policy == "always" ? objstore::FsyncPolicy::kAlways : objstore::FsyncPolicy::kNone;
           });
  app.add_flag("--json", stream.json, "print JSON, with the same fields");
}

void define_init(CLI::App& app, StoreInit& init) {
  add_stream_args(app, init.stream);
}

void define_ls(CLI::App& app, StoreLs& ls) {
  add_stream_args(app, ls.stream);
  add_number(app, "--from", "begin with this step (default: the oldest)",
             [&ls](std::uint64_t step) { ls.from = store::Step(step); });
  add_number(app, "--limit", "at most so many entries (default: all)",
             [&ls](std::uint64_t limit) { ls.limit = limit; }, {.least = 1});
}

void define_show(CLI::App& app, StoreShow& show) {
  add_stream_args(app, show.stream);
  CLI::Option* slot =
      add_number(app, "--slot", "the head of this slot (default: the newest)",
                 [&show](std::uint64_t n) { show.slot = store::Slot(n); }, {.least = 1});
  add_number(app, "--step", "the entry of this step", [&show](std::uint64_t n) {
    show.step = store::Step(n);
  })->excludes(slot);
}

void define_verify(CLI::App& app, StoreVerify& verify) {
  add_stream_args(app, verify.stream);
}

void define_fence(CLI::App& app, StoreFence& fence) {
  add_stream_args(app, fence.stream);
  add_text(app, "--producer", "NAME", "whose older sessions must stop",
           [&fence](const std::string& name) {
             refuse_unless_ok(store::validate_name("producer", name));
             fence.producer = name;
           })
      ->required();
}

void define_probe(CLI::App& app, StoreProbe& probe) {
  probe.size_bytes = objstore::ProbeOptions().batch_size_bytes;
  add_stream_args(app, probe.stream);
  add_number(app, "--size",
             fmt::format("bytes of a batch object (default: {}); 0: leave out what needs them",
                         probe.size_bytes),
             [&probe](std::uint64_t n) { probe.size_bytes = n; }, {.most = kMostProbeBytes});
}

void define_sim(CLI::App& app, SimStore& sim) {
  simulator::SimOptions& options = sim.options;
  options.jobs = static_cast<unsigned>(std::max(sysconf(_SC_NPROCESSORS_ONLN), 1L));
  CLI::Option* seeds =
      add_number(app, "--seeds", fmt::format("how many seeds (default: {})", options.seeds),
                 [&options](std::uint64_t n) { options.seeds = n; }, {1, kMostSeeds});
  CLI::Option* first =
      add_number(app, "--first-seed", "the first one (default: 0)",
                 [&options](std::uint64_t n) { options.first_seed = n; }, {0, kMostSeeds});
  CLI::Option* seed = add_number(app, "--seed", "run this one seed again",
                                 [&options](std::uint64_t n) {
                                   options.first_seed = n;
                                   options.seeds = 1;
                                 },
                                 {0, kMostSeeds})
                          ->excludes(seeds)
                          ->excludes(first);
  add_text(app, "--without", "FAULTS", "with --seed: leave these faults out, as in crash:0,put:17",
           [&options](const std::string& text) {
             auto troubles = simulator::parse_troubles(text);
             refuse_unless_ok(troubles.status());
             options.without = *std::move(troubles);
           })
      ->needs(seed);
  add_text(app, "--break", "NAME",
           "switch a safeguard of the protocol off; the simulation must then fail",
           [&options](const std::string& name) {
             options.broken = store::parse_safeguard(name);
             if (options.broken) return;
             std::vector<std::string> names;
             for (const auto known : store::kAllSafeguards) names.emplace_back(to_string(known));
             refuse(fmt::format("--break: '{}' is not a safeguard; choose one of {}", name,
                                fmt::join(names, ", ")));
           });
  add_number(app, "--jobs", "seeds that run at once (default: one for each processor)",
             [&options](std::uint64_t n) { options.jobs = static_cast<unsigned>(n); },
             {1, kMostJobs});
  app.add_flag("--json", sim.json, "print JSON, with the same fields");
}

/// The whole command line. Parses once.
class Parser {
 public:
  explicit Parser(std::string_view version) {
    app_.name("batchloom");
    app_.description("A training data plane for large foundation models.");
    app_.set_help_flag("--help", "print this help");
    app_.set_version_flag("--version", fmt::format("batchloom {}", version), "print the version");
    app_.require_subcommand(1);
    CLI::App& store = add_group("store", "streams of batches in an object store");
    add(store, "init", "make a stream, or finish making it", init_, define_init);
    add(store, "ls", "list what was committed, oldest first", ls_, define_ls);
    add(store, "show", "print a manifest head, or the entry of a step", show_, define_show);
    add(store, "verify", "check a whole stream; exit code 1 if anything is wrong", verify_,
        define_verify);
    add(store, "fence", "stop all sessions of a producer for good", fence_, define_fence);
    add(store, "probe", "check that the object store keeps its promises", probe_, define_probe);
    CLI::App& sim = add_group("sim", "simulations of the real code under faults");
    add(sim, "store", "the batch store; exit code 1 if a rule is broken", sim_, define_sim);
  }

  std::variant<Command, Answer> parse(std::span<const char* const> args) {
    try {
      app_.parse(static_cast<int>(args.size()), args.data());
      return *chosen_;
    } catch (const CLI::ParseError& error) {
      if (error.get_exit_code() != 0) return usage(error.what());
      std::ostringstream out;
      app_.exit(error, out, out);
      return Answer{.exit_code = kDone, .out = out.str(), .err = {}};
    }
  }

 private:
  CLI::App& add_group(const std::string& name, const std::string& help) {
    CLI::App& group = *app_.add_subcommand(name, help);
    group.require_subcommand(1);
    return group;
  }

  template <class Args>
  void add(CLI::App& group, const std::string& name, const std::string& help, Args& args,
           void (*define)(CLI::App&, Args&)) {
    CLI::App& app = *group.add_subcommand(name, help);
    define(app, args);
    app.callback([this, &args] { chosen_ = args; });
  }

  /// What is wrong, and where help is to be had. `reason` is the parser's own.
  Answer usage(const std::string& reason) const {
    const CLI::App* app = &app_;
    std::string path = app->get_name();
    while (!app->get_subcommands().empty()) {
      app = app->get_subcommands().front();
      path += " " + app->get_name();
    }
    const std::vector<std::string> extras = app_.remaining(true);
    const std::string problem = extras.empty() ? reason : unknown(*app, extras.front());
    return {.exit_code = kUsage,
            .out = {},
            .err = fmt::format("{}: {}\nRun `{} --help`.\n", path, problem, path)};
  }

  static std::string unknown(const CLI::App& app, const std::string& word) {
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

  CLI::App app_;
  StoreInit init_;
  StoreLs ls_;
  StoreShow show_;
  StoreVerify verify_;
  StoreFence fence_;
  StoreProbe probe_;
  SimStore sim_;
  std::optional<Command> chosen_;
};

}  // namespace

std::variant<Command, Answer> parse_args(std::span<const char* const> args,
                                         std::string_view version) {
  return Parser(version).parse(args);
}

}  // namespace batchloom::cli
