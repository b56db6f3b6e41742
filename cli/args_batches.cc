// SPDX-License-Identifier: Apache-2.0
// The options of what writes and reads whole batches.
#include <fmt/format.h>

#include "batchloom/base/quantity.h"
#include "cli/define.h"

namespace batchloom::cli {
namespace {

constexpr Range kCount{.least = 1, .most = UINT32_MAX};
constexpr std::uint64_t kMostUploaders = 256;
constexpr std::uint64_t kMostWorldRanks = 65'536;

void define_count(Options& options, const std::string& option, const std::string& help,
                  std::uint32_t& count) {
  options.number(
      option, fmt::format("{} (default: {})", help, count),
      [&count](std::uint64_t n) { count = static_cast<std::uint32_t>(n); }, kCount);
}

/// What a synthetic producer writes; see synthetic.h.
void define_synthetic(Options& options, simulator::SyntheticConfig& config) {
  options.number("--seed", "of all random choices (default: 0)",
                 [&config](std::uint64_t n) { config.seed = n; });
  define_count(options, "--ranks", "HDP ranks of each step", config.ranks);
  define_count(options, "--steps-per-object", "steps in one batch object", config.steps_per_object);
  define_count(options, "--records-per-run", "samples of each rank and step",
               config.records_per_run);
  define_count(options, "--record-tokens", "tokens of a sample", config.record_tokens);
  options.flag("--ring", "add a sample to each step that lies on all ranks", config.ring);
  options.text(
      "--token-bits", "16|32", "width of a stored token id (default: 16)",
      [&config](const std::string& bits) {
        if (bits != "16" && bits != "32") {
          return Status::invalid(fmt::format("--token-bits: '{}' is neither 16 nor 32", bits));
        }
        config.token_width = bits == "16" ? store::TokenWidth::k16 : store::TokenWidth::k32;
        return Status::ok();
      });
  options.number("--source", "whose samples they are: each producer's own (default: 0)",
                 [&config](std::uint64_t n) {
                   config.source = model::SourceId(static_cast<std::uint32_t>(n));
                 },
                 {.most = 1000});
  options.check([&config] { return simulator::SyntheticBatches::create(config).status(); });
}

Status check_whole_objects(std::uint64_t steps, const simulator::SyntheticConfig& config) {
  if (steps % config.steps_per_object == 0) return Status::ok();
  return Status::invalid(
      fmt::format("--steps={}: not a multiple of --steps-per-object={}, and objects are written "
                  "whole",
                  steps, config.steps_per_object));
}

Status check_consume(const Consume& consume) {
  if (consume.group.empty() && (consume.report || consume.pin_every)) {
    return Status::invalid("--report and --pin-every need --group=NAME: whose cursor, whose pins");
  }
  if (!consume.world || consume.rank.value < *consume.world) return Status::ok();
  return Status::invalid(fmt::format("--rank={}: a world of {} has ranks 0 to {}",
                                     consume.rank.value, *consume.world, *consume.world - 1));
}

void define_consume_group(Options& options, Consume& consume) {
  define_name(options, "--group", "NAME", "group", "the job that this rank belongs to",
              consume.group);
  options.flag("--report", "report the group's live cursor; one rank of a group should",
               consume.report);
  define_count(options, "--report-every", "steps between two reports at most",
               consume.report_every);
  options.needs("--report");
  options.number(
      "--pin-every",
      "pin the next step whenever a multiple of N is reached or passed, as a checkpoint does",
      [&consume](std::uint64_t n) { consume.pin_every = n; }, {.least = 1});
  options
      .number("--keep", fmt::format("pins that it leaves in place (default: {})", consume.keep),
              [&consume](std::uint64_t n) { consume.keep = n; }, {.least = 1})
      .needs("--pin-every");
}

}  // namespace

void define_produce(Options& options, Produce& produce) {
  define_stream(options, produce.stream);
  options.flag("--synthetic", "made-up samples (there is no other source yet)", produce.synthetic);
  options.required();
  define_name(options, "--producer", "NAME", "producer", "who writes them", produce.producer);
  options.required();
  define_synthetic(options, produce.config);
  options.number("--steps",
                 "how many this producer writes, earlier runs included (default: no end)",
                 [&produce](std::uint64_t n) { produce.steps = n; }, {.least = 1});
  options.number(
      "--uploaders",
      fmt::format("batches that are built and uploaded at once (default: {})", produce.uploaders),
      [&produce](std::uint64_t n) { produce.uploaders = static_cast<std::uint32_t>(n); },
      {1, kMostUploaders});
  options.text("--lead", "N|unlimited",
               fmt::format("steps ahead of the slowest consumer (default: {})", *produce.lead),
               [&produce](const std::string& text) { return parse_lead(text, produce.lead); });
  options.flag("--end", "end the stream after the last step", produce.end).needs("--steps");
  options.check(
      [&produce] { return check_whole_objects(produce.steps.value_or(0), produce.config); });
}

void define_consume(Options& options, Consume& consume) {
  define_stream(options, consume.stream);
  const auto set_rank = [&consume](std::uint64_t n) {
    consume.rank = model::HdpRank(static_cast<std::uint32_t>(n));
  };
  options.number("--rank", "the HDP rank to read as", set_rank, {.most = UINT32_MAX}).required();
  options.number("--world", "deal the samples of each step to N ranks (default: as stored)",
                 [&consume](std::uint64_t n) { consume.world = static_cast<std::uint32_t>(n); },
                 {1, kMostWorldRanks});
  define_consume_group(options, consume);
  options.number("--start", "the first step to read (default: 0)",
                 [&consume](std::uint64_t n) { consume.start = store::Step(n); });
  options.number("--min-slot", "open with this manifest head or a newer one",
                 [&consume](std::uint64_t n) { consume.min_slot = store::Slot(n); });
  options.number("--steps", "how many to read (default: until the stream ends)",
                 [&consume](std::uint64_t n) { consume.steps = n; });
  options.bytes("--prefetch", "what may be read ahead (default: 256MiB)",
                [&consume](std::uint64_t n) { consume.prefetch_bytes = n; });
  options.text("--hashes", "FILE", "append a line for each step to FILE, or print it (-)",
               [&consume](const std::string& file) {
                 consume.hashes = file;
                 return Status::ok();
               });
  options.flag("--paced", "read a step for each line on stdin, and end with it", consume.paced);
  options.check([&consume] { return check_consume(consume); });
}

void define_sim_batches(Options& options, SimBatches& batches) {
  define_synthetic(options, batches.config);
  options.number("--first-step", "of the producer (default: 0)",
                 [&batches](std::uint64_t n) { batches.first_step = n; });
  options.number("--steps", "how many", [&batches](std::uint64_t n) { batches.steps = n; })
      .required();
  options.number(
      "--rank", "only what this rank gets (default: all ranks)",
      [&batches](std::uint64_t n) { batches.rank = model::HdpRank(static_cast<std::uint32_t>(n)); },
      {.most = UINT32_MAX});
  options.flag("--json", "print JSON, with the same fields", batches.json);
  options.check([&batches] {
    if (!batches.rank || batches.rank->value < batches.config.ranks) return Status::ok();
    return Status::invalid(fmt::format("--rank={}: --ranks={} has ranks 0 to {}",
                                       batches.rank->value, batches.config.ranks,
                                       batches.config.ranks - 1));
  });
}

}  // namespace batchloom::cli
