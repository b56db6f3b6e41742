// SPDX-License-Identifier: Apache-2.0
#include "cli/args.h"
#include "batchloom/base/quantity.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "batchloom/objstore/probe.h"
#include "batchloom/store/keys.h"
#include "cli/define.h"

namespace batchloom::cli {

void define_name(Options& options, const std::string& option, const std::string& type,
                 const std::string& what, const std::string& help, std::string& name) {
  options.text(option, type, help, [&name, what](const std::string& text) {
    name = text;
    return store::validate_name(what, text);
  });
}

void define_stream(Options& options, StreamArgs& stream) {
  options.argument("URL", "where the stream lies: ./dir, /abs/dir or file:///abs/dir",
                   [&stream](const std::string& url) {
                     const Result<std::string> folder = store::parse_store_url(url);
                     if (!folder.is_ok()) return folder.status();
                     stream.location.url = url;
                     stream.location.folder = *folder;
                     return Status::ok();
                   });
  define_fsync(options, stream.location.fsync);
  options.flag("--json", "print JSON, with the same fields", stream.json);
}

void define_fsync(Options& options, objstore::FsyncPolicy& fsync) {
  options.text(
      "--fsync", "always|none",
      "always (default): what was written survives a power cut; none: faster",
      [&fsync](const std::string& policy) {
        if (policy != "always" && policy != "none") {
          return Status::invalid(fmt::format("--fsync: '{}' is neither always nor none", policy));
        }
        fsync = policy == "always" ? objstore::FsyncPolicy::kAlways : objstore::FsyncPolicy::kNone;
        return Status::ok();
      });
}

Status parse_lead(const std::string& text, std::optional<std::uint64_t>& lead) {
  lead = std::nullopt;
  if (text == "unlimited") return Status::ok();
  lead = parse_number(text);
  if (lead && *lead > 0) return Status::ok();
  return Status::invalid(
      fmt::format("--lead: '{}' is neither a whole number from 1 nor unlimited", text));
}

namespace {

/// So that the last seed of a run is a number too.
constexpr std::uint64_t kMostSeeds = std::uint64_t{1} << 62;
constexpr std::uint64_t kMostJobs = 1024;
/// The probe holds that many for each of its racers.
constexpr std::uint64_t kMostProbeBytes = std::uint64_t{256} << 20;

std::optional<store::VerifyDepth> verify_depth(std::string_view text) {
  if (text == "manifest") return store::VerifyDepth::kManifest;
  if (text == "records") return store::VerifyDepth::kRecords;
  if (text == "payload") return store::VerifyDepth::kPayload;
  return std::nullopt;
}

void define_init(Options& options, StoreInit& init) {
  define_stream(options, init.stream);
}

void define_ls(Options& options, StoreLs& ls) {
  define_stream(options, ls.stream);
  options.number("--from", "begin with this step (default: the oldest)",
                 [&ls](std::uint64_t step) { ls.from = store::Step(step); });
  options.number("--limit", "at most so many entries (default: all)",
                 [&ls](std::uint64_t limit) { ls.limit = limit; }, {.least = 1});
}

void define_show(Options& options, StoreShow& show) {
  define_stream(options, show.stream);
  options.number("--slot", "the head of this slot (default: the newest)",
                 [&show](std::uint64_t n) { show.slot = store::Slot(n); }, {.least = 1});
  options
      .number("--step", "the entry of this step, and where each of its pieces comes from",
              [&show](std::uint64_t n) { show.step = store::Step(n); })
      .excludes("--slot");
  options
      .number(
          "--rank", "with --step: the pieces of this HDP rank (default: of all)",
          [&show](std::uint64_t n) { show.rank = model::HdpRank(static_cast<std::uint32_t>(n)); },
          {.most = UINT32_MAX})
      .needs("--step");
}

void define_verify(Options& options, StoreVerify& verify) {
  define_stream(options, verify.stream);
  options.text(
      "--depth", "manifest|records|payload",
      "manifest: batches by name and size; records (default): their indexes too, and that "
      "no record is drawn twice; payload: every byte",
      [&verify](const std::string& depth) {
        const auto chosen = verify_depth(depth);
        if (chosen) verify.depth = *chosen;
        return chosen ? Status::ok()
                      : Status::invalid(fmt::format(
                            "--depth: '{}' is neither manifest nor records nor payload", depth));
      });
}

void define_fence(Options& options, StoreFence& fence) {
  define_stream(options, fence.stream);
  define_name(options, "--producer", "NAME", "producer", "whose older sessions must stop",
              fence.producer);
  options.required();
}

void define_probe(Options& options, StoreProbe& probe) {
  probe.size_bytes = objstore::ProbeOptions().batch_size_bytes;
  define_stream(options, probe.stream);
  options.number("--size",
                 fmt::format("bytes of a batch object (default: {}); 0: leave out what needs them",
                             probe.size_bytes),
                 [&probe](std::uint64_t n) { probe.size_bytes = n; }, {.most = kMostProbeBytes});
}

void define_gc(Options& options, StoreGc& gc) {
  define_stream(options, gc.stream);
  options.flag("--dry-run", "remove nothing; print each object that would go, and why", gc.dry_run);
  options.flag("--yes", "remove what nobody needs", gc.yes).excludes("--dry-run");
  options.flag("--list", "print each removed object, and why", gc.list).needs("--yes");
  options
      .duration("--every", "pass after pass, with such pauses, until a signal",
                [&gc](Duration pause) { gc.every = pause; })
      .needs("--yes");
  options.number("--slots-kept",
                 fmt::format("newest manifest slots to keep (default: {})", gc.slots_kept),
                 [&gc](std::uint64_t n) { gc.slots_kept = n; }, {.least = 1});
  options.check([&gc] {
    if (gc.every && *gc.every <= Duration::zero()) {
      return Status::invalid("--every: a pause of nothing would never let the store rest");
    }
    if (gc.dry_run || gc.yes) return Status::ok();
    return Status::invalid("say --dry-run to see what would be removed, or --yes to remove it");
  });
}

void define_pin(Options& options, StorePin& pin) {
  define_stream(options, pin.stream);
  define_name(options, "--group", "NAME", "group", "whose pin it is", pin.request.group);
  options.required();
  define_name(options, "--id", "NAME", "pin", "the checkpoint's name", pin.request.id);
  options.required();
  options
      .number("--step", "the first step that is still needed",
              [&pin](std::uint64_t n) { pin.request.step = store::Step(n); })
      .required();
}

void define_unpin(Options& options, StoreUnpin& unpin) {
  define_stream(options, unpin.stream);
  define_name(options, "--group", "NAME", "group", "whose pins they are", unpin.group);
  options.required();
  define_name(options, "--id", "NAME", "pin", "remove all of its pins of this name", unpin.id);
  options.flag("--live", "close its live cursor: it no longer bounds producers, nor keeps steps",
               unpin.live);
  options.excludes("--id");
  options.check([&unpin] {
    if (unpin.live || !unpin.id.empty()) return Status::ok();
    return Status::invalid("say which: --id=NAME for pins of that name, or --live for the cursor");
  });
}

void define_pins(Options& options, StorePins& pins) {
  define_stream(options, pins.stream);
}

void define_skip(Options& options, StoreSkip& skip) {
  define_stream(options, skip.stream);
  options
      .number("--step", "the step that consumers opened from now on pass over",
              [&skip](std::uint64_t n) { skip.step = store::Step(n); })
      .required();
}

void define_end(Options& options, StoreEnd& end) {
  define_stream(options, end.stream);
}

void define_reopen(Options& options, StoreReopen& reopen) {
  define_stream(options, reopen.stream);
}

std::string names_of_safeguards() {
  std::vector<std::string_view> names;
  for (const auto known : store::kAllSafeguards) names.push_back(to_string(known));
  return fmt::format("{}", fmt::join(names, ", "));
}

Status break_safeguard(const std::string& name, simulator::SimOptions& options) {
  options.broken = store::parse_safeguard(name);
  if (options.broken) return Status::ok();
  return Status::invalid(fmt::format("--break: '{}' is not a safeguard; choose one of {}", name,
                                     names_of_safeguards()));
}

void define_sim_store(Options& options, SimStore& sim) {
  simulator::SimOptions& to = sim.options;
  to.jobs = static_cast<unsigned>(std::max(sysconf(_SC_NPROCESSORS_ONLN), 1L));
  options.number("--seeds", fmt::format("how many seeds (default: {})", to.seeds),
                 [&to](std::uint64_t n) { to.seeds = n; }, {1, kMostSeeds});
  options.number("--first-seed", "the first one (default: 0)",
                 [&to](std::uint64_t n) { to.first_seed = n; }, {0, kMostSeeds});
  options
      .number("--seed", "run this one seed again",
              [&to](std::uint64_t n) {
                to.first_seed = n;
                to.seeds = 1;
              },
              {0, kMostSeeds})
      .excludes("--seeds")
      .excludes("--first-seed");
  options
      .text("--without", "FAULTS", "with --seed: leave these faults out, as in crash:0,put:17",
            [&to](const std::string& text) {
              BL_ASSIGN_OR_RETURN(to.without, simulator::parse_troubles(text));
              return Status::ok();
            })
      .needs("--seed");
  options.text("--break", "NAME",
               fmt::format("switch a safeguard of the protocol off; the simulation must then fail. "
                           "One of {}",
                           names_of_safeguards()),
               [&to](const std::string& name) { return break_safeguard(name, to); });
  options.number("--jobs", "seeds that run at once (default: one for each processor)",
                 [&to](std::uint64_t n) { to.jobs = static_cast<unsigned>(n); }, {1, kMostJobs});
  options.flag("--json", "print JSON, with the same fields", sim.json);
}

/// The whole command line. Parses once.
class Parser {
 public:
  explicit Parser(std::string_view version) : line_(version) {
    add("", "run", "make a stream from the sources of a pipeline", define_run);
    add("", "top", "show what a run does, as it does it", define_top);
    add("", "index", "tokenize and count what a pipeline reads, once", define_index);
    add("", "produce", "write synthetic batches to a stream", define_produce);
    add("", "consume", "read a stream as one of its ranks does", define_consume);
    add("", "explain", "print a pipeline as it is understood, with every default", define_explain);
    add("", "whatif", "compare strategies of planning on a cluster; nothing is run", define_whatif);
    add("", "calibrate", "make a cost model of timings", define_calibrate);
    line_.group("plan", "plans of steps");
    add("plan", "explain", "tell how good a plan is, and what bounds it", define_plan_explain);
    line_.group("store", "streams of batches in an object store");
    add("store", "init", "make a stream, or finish making it", define_init);
    add("store", "ls", "list what was committed, oldest first", define_ls);
    add("store", "show", "print a manifest head, or a step and where its data come from",
        define_show);
    add("store", "verify", "check a whole stream; exit code 1 if anything is wrong", define_verify);
    add("store", "fence", "stop all sessions of a producer for good", define_fence);
    add("store", "probe", "check that the object store keeps its promises", define_probe);
    add("store", "gc", "trim what no pin keeps, and remove what nobody needs", define_gc);
    add("store", "pin", "keep all steps from one on", define_pin);
    add("store", "unpin", "withdraw a group's pins, or close its live cursor", define_unpin);
    add("store", "pins", "list pins and live cursors", define_pins);
    add("store", "skip", "let consumers pass over a damaged step", define_skip);
    add("store", "end", "end the stream at its next step", define_end);
    add("store", "reopen", "let an ended stream go on", define_reopen);
    line_.group("state", "what a stream was made by, and how far: for checkpoints");
    add("state", "show", "tell what was committed with a step, or what a saved state is of",
        define_state_show);
    add("state", "diff", "tell what lies between two steps or saved states; exit code 1 if any",
        define_state_diff);
    line_.group("sim", "simulations of the real code under faults");
    add("sim", "store", "the batch store; exit code 1 if a rule is broken", define_sim_store);
    add("sim", "batches", "what ranks must get of a synthetic producer", define_sim_batches);
  }

  std::variant<Command, Answer> parse(std::span<const char* const> args) {
    std::optional<Answer> answer = line_.parse(args);
    if (answer) return *std::move(answer);
    return *std::move(chosen_);
  }

 private:
  template <class Args>
  void add(const std::string& group, const std::string& name, const std::string& help,
           void (*define)(Options&, Args&)) {
    // Filled in while the command line is parsed.
    const auto args = std::make_shared<Args>();
    Options& options = line_.command(group, name, help, [this, args] { chosen_ = *args; });
    define(options, *args);
  }

  CommandLine line_;
  std::optional<Command> chosen_;
};

}  // namespace

std::variant<Command, Answer> parse_args(std::span<const char* const> args,
                                         std::string_view version) {
  return Parser(version).parse(args);
}

}  // namespace batchloom::cli
