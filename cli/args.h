// SPDX-License-Identifier: Apache-2.0
// The command line as plain structs. Everything that can be refused without touching data is
// refused while they are filled in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "batchloom/control/pipeline_config.h"
#include "batchloom/control/slow_samples.h"
#include "batchloom/simulator/store_sim.h"
#include "batchloom/simulator/synthetic.h"
#include "batchloom/store/batch_check.h"
#include "batchloom/store/ids.h"
#include "batchloom/store/open_url.h"
#include "batchloom/store/pins.h"
#include "cli/command_line.h"
#include "cli/host_port.h"

namespace batchloom::cli {

/// What all commands on a stream take.
struct StreamArgs {
  store::StoreLocation location;
  bool json = false;
};

/// `batchloom store init URL`
struct StoreInit {
  StreamArgs stream;
};

/// `batchloom store ls URL [--from STEP] [--limit N]`
struct StoreLs {
  StreamArgs stream;
  std::optional<store::Step> from;  ///< The oldest step where absent.
  std::uint64_t limit = UINT64_MAX;
};

/// `batchloom store show URL [--slot N | --step N [--rank R]]`: the newest head where neither is
/// given.
struct StoreShow {
  StreamArgs stream;
  std::optional<store::Slot> slot;
  std::optional<store::Step> step;
  std::optional<model::HdpRank> rank;  ///< All ranks where absent.
};

/// `batchloom store verify URL [--depth manifest|records|payload]`
struct StoreVerify {
  StreamArgs stream;
  store::VerifyDepth depth = store::VerifyDepth::kRecords;
};

/// `batchloom store fence URL --producer NAME`
struct StoreFence {
  StreamArgs stream;
  std::string producer;
};

/// `batchloom store probe URL [--size BYTES]`
struct StoreProbe {
  StreamArgs stream;
  std::size_t size_bytes = 0;
};

/// `batchloom store gc URL (--dry-run | --yes [--every TIME] [--list]) [--slots-kept N]`
struct StoreGc {
  StreamArgs stream;
  bool dry_run = false;
  bool yes = false;
  bool list = false;              ///< Name each object that is removed, as a dry run does.
  std::optional<Duration> every;  ///< Pass after pass until a signal, with such pauses.
  std::uint64_t slots_kept = store::Limits().slots_kept;
};

/// `batchloom store pin URL --group G --id ID --step N`
struct StorePin {
  StreamArgs stream;
  store::PinRequest request;
};

/// `batchloom store unpin URL --group G (--id ID | --live)`
struct StoreUnpin {
  StreamArgs stream;
  std::string group;
  std::string id;     ///< Empty: --live.
  bool live = false;  ///< Close the group's live cursor.
};

/// `batchloom store pins URL`
struct StorePins {
  StreamArgs stream;
};

/// `batchloom store skip URL --step N`
struct StoreSkip {
  StreamArgs stream;
  store::Step step;
};

/// `batchloom store end URL`
struct StoreEnd {
  StreamArgs stream;
};

/// `batchloom store reopen URL`
struct StoreReopen {
  StreamArgs stream;
};

/// A place in a stream, as a user says it: "start", the number of a step (after it), or a file with
/// the state that a consumer saved.
struct StatePoint {
  std::string text;
  std::optional<store::Step> step = {};
  bool start = false;

  bool is_file() const { return !start && !step; }
};

/// `batchloom state show URL [--step N | --saved FILE]`
struct StateShow {
  StreamArgs stream;
  std::optional<StatePoint> at;  ///< Absent: after the newest step.
};

/// `batchloom state diff URL A B`
struct StateDiff {
  StreamArgs stream;
  StatePoint a;
  StatePoint b;
};

/// `batchloom produce URL --synthetic --producer NAME ...`
struct Produce {
  StreamArgs stream;
  simulator::SyntheticConfig config;
  bool synthetic = false;  ///< It has to be asked for: other sources come later.
  std::string producer;
  std::optional<std::uint64_t> steps;  ///< Of this producer, in all its runs. Absent: no end.
  std::uint32_t uploaders = 2;
  std::optional<std::uint64_t> lead = 32;  ///< Absent: unlimited.
  bool end = false;                        ///< End the stream after the last step.
};

/// `batchloom consume URL --rank R ...`
struct Consume {
  StreamArgs stream;
  model::HdpRank rank;
  std::optional<std::uint32_t> world;  ///< Ranks to deal each step's samples to; absent: as stored.
  std::string group;
  store::Step start;
  store::Slot min_slot;
  std::optional<std::uint64_t> steps;
  std::uint64_t prefetch_bytes = std::uint64_t{256} << 20;
  bool report = false;                     ///< Report the group's live cursor.
  std::uint32_t report_every = 8;          ///< Steps.
  std::optional<std::uint64_t> pin_every;  ///< Steps.
  std::uint64_t keep = 2;                  ///< Pins of its group that it leaves in place.
  std::string hashes;                      ///< A file, "-" for stdout, or empty: none.
  bool paced = false;                      ///< A step for each line of stdin.
};

/// `batchloom sim batches --steps N ...`: what ranks must get of a synthetic producer.
struct SimBatches {
  simulator::SyntheticConfig config;
  std::uint64_t first_step = 0;
  std::uint64_t steps = 0;
  std::optional<model::HdpRank> rank;  ///< All of them where absent.
  bool json = false;
};

/// `batchloom sim store ...`
struct SimStore {
  simulator::SimOptions options;
  bool json = false;
};

/// Which lengths, as studies of planning take them.
struct LengthsArgs {
  std::string
      lengths;         ///< A distribution's name, a file, a pattern of files, or a pipeline's file.
  std::string column;  ///< Of a CSV file.
  std::optional<control::TokenizerKind> tokenizer;  ///< Of files of records.
  std::vector<std::string> fields;                  ///< Of these: none, one or two.
  std::string index_folder;                         ///< Of a pipeline's indexes.
  std::string cluster;                              ///< A file; empty: the built-in one.
  std::optional<std::uint64_t> tokens;              ///< Of a step; absent: as the lengths have it.
  std::optional<std::uint64_t> seed;
};

/// `batchloom whatif --lengths NAME|FILES|PIPELINE ...`
struct Whatif {
  LengthsArgs lengths;
  std::vector<std::uint32_t> contexts;  ///< Empty: as the lengths have it.
  /// Empty: those of simulator::ladder_of(), and none and two_level beside them.
  std::vector<std::string> strategies;
  bool all = false;  ///< Every strategy; those that cannot plan say so.
  std::uint64_t steps = 4;
  bool assumptions = false;  ///< Replay again with each assumption changed.
  bool check = false;        ///< The order of simulator::ladder_of() is a must.
  std::string json;          ///< A file, "-" for stdout instead of the table, or empty.
  std::string svg;           ///< A folder, or empty.
};

/// `batchloom plan explain (--lengths NAME|FILES|PIPELINE ... | --store URL --step N)`
struct PlanExplain {
  LengthsArgs lengths;
  std::optional<std::uint32_t> context_tokens;  ///< Absent: as the lengths have it.
  std::string strategy = "hdp";
  store::StoreLocation store;  ///< Its URL is empty where lengths are given.
  std::optional<store::Step> step;
  bool timeline = false;  ///< Each phase of each task on each rank, too.
  bool json = false;
};

/// `batchloom run FILE [--steps N] [--lead N|unlimited] [--split NAME] [--store URL] ...`: what is
/// given stands in for what the file says.
struct RunPipeline {
  std::string pipeline;  ///< A file.
  std::optional<std::uint64_t> steps;
  std::optional<std::optional<std::uint64_t>> lead;  ///< Of a value that is absent: unlimited.
  std::optional<std::string> split;
  std::optional<std::string> store;
  objstore::FsyncPolicy fsync = objstore::FsyncPolicy::kAlways;
  std::string index_folder;  ///< Empty: indexes lie beside shards.
  std::optional<store::Step> change_from;
  std::optional<Duration> reclaim_every = std::chrono::seconds(10);
  Duration sample_timeout = control::SlowSampleOptions().sample_max;
  std::optional<HostPort> metrics;  ///< Served there; absent: not served.
  bool json = false;
};

/// `batchloom top HOST:PORT [--once] [--every TIME]`
struct Top {
  HostPort place;  ///< Of a run that serves its metrics.
  bool once = false;
  Duration every = std::chrono::seconds(1);
};

/// `batchloom index FILE`
struct IndexSources {
  std::string pipeline;  ///< A file.
  std::string index_folder;
  bool json = false;
};

/// `batchloom explain FILE [--steps N] [--split NAME]`
struct Explain {
  std::string pipeline;                ///< A file.
  std::optional<std::uint64_t> steps;  ///< To foresee; absent: the file's, and at most 1,000.
  std::optional<std::string> split;
  std::string index_folder;
  bool json = false;
};

/// `batchloom calibrate FILE.csv [--out FILE] ...`
struct Calibrate {
  std::string timings;
  std::string out;
  std::string name = "calibrated";
  std::string base = "h200-llama7b";
  bool json = false;
};

using Command =
    std::variant<StoreInit, StoreLs, StoreShow, StoreVerify, StoreFence, StoreProbe, StoreGc,
                 StorePin, StoreUnpin, StorePins, StoreSkip, StoreEnd, StoreReopen, StateShow,
                 StateDiff, Produce, Consume, SimBatches, SimStore, Whatif, PlanExplain, Calibrate,
                 Explain, RunPipeline, IndexSources, Top>;

/// `args` are those of main(), the program's name first. `version` is what --version says.
std::variant<Command, Answer> parse_args(std::span<const char* const> args,
                                         std::string_view version);

}  // namespace batchloom::cli
