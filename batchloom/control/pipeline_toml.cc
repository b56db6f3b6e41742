// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/pipeline_toml.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "batchloom/control/pipeline_check.h"
#include "batchloom/control/pipeline_text.h"
#include "batchloom/control/source_reader.h"
#include "batchloom/control/table_reader.h"
#include "batchloom/control/text_function_reader.h"
#include "batchloom/planning/cost_model_toml.h"

namespace batchloom::control {
namespace {

constexpr std::uint64_t kMaxLeadSteps = std::uint64_t{1} << 32;
/// What planning needs memory for before anything runs.
constexpr std::uint32_t kMaxRanks = 1U << 18;
constexpr std::uint64_t kMaxWorkers = 4096;
constexpr std::uint64_t kLeastMemoryBytes = std::uint64_t{1} << 20;
constexpr std::size_t kMaxFrameIds = 1024;

class PipelineReader {
 public:
  PipelineReader(const TomlNode& root, const std::string& file, const PipelineInputs& inputs)
      : root_(root, "", "", notes_), file_(file), inputs_(inputs) {}

  Result<PipelineFile> read() {
    root_.whole("seed", {}, config_.seed);
    in_section("run", [&](TableReader& table) { read_run(table); });
    in_section("store", [&](TableReader& table) { read_store(table); });
    in_section("topology", [&](TableReader& table) { read_topology(table); });
    in_section("step", [&](TableReader& table) { read_step(table); });
    in_section("tokens", [&](TableReader& table) { read_tokens(table); });
    in_section("image", [&](TableReader& table) { read_image(table); });
    in_section("balance", [&](TableReader& table) { read_balance(table); });
    in_section("limits", [&](TableReader& table) { read_limits(table); });
    read_sources();
    if (notes_.faults.empty()) check_pipeline(config_, notes_);
    BL_RETURN_IF_ERROR(notes_.faults.to_status(file_));
    return PipelineFile{file_, std::move(config_), std::move(notes_.lines)};
  }

 private:
  /// Reads the table of this name, or an empty one where it is missing.
  template <class Read>
  void in_section(const std::string& name, const Read& read) {
    static const TomlNode kNothing;
    std::optional<TableReader> table = root_.table(name);
    if (!table && root_.has(name)) return;  // Refused.
    if (!table) table.emplace(kNothing, name, name, notes_);
    read(*table);
  }

  void read_run(TableReader& table) {
    std::uint64_t steps = 0;
    table.whole("steps", {.least = 1}, steps);
    if (steps != 0) config_.run.steps = steps;
    table.text("split", config_.run.split);
  }

  void read_store(TableReader& table) {
    StoreConfig& store = config_.store;
    table.need("url");
    table.text("url", store.url);
    if (table.has("url") && store.url.empty()) table.fault("url", "an empty URL");
    table.whole_or("lead_steps", {1, kMaxLeadSteps}, "unlimited", store.lead_steps);
    read_codec(table);
    if (auto retain = table.table("retain")) {
      std::uint64_t bytes = 0;
      retain->need("max_bytes");
      retain->bytes("max_bytes", {.least = 1}, bytes);
      if (bytes != 0) store.retain_max_bytes = bytes;
    }
    const auto of_s3 = [&](std::string_view key, std::string& value) {
      table.text(key, value);
      if (!value.empty() && !store.url.starts_with("s3://")) {
        table.fault(key, fmt::format("is of s3:// alone, and url is {}", shown(store.url)));
      }
    };
    of_s3("endpoint", store.endpoint);
    of_s3("region", store.region);
    of_s3("profile", store.profile);
  }

  void read_codec(TableReader& table) {
    std::string name(codec_names()[0]);
    table.text("codec", name);
    if (name == "zstd") return table.fault("codec", "zstd is not built yet; raw is");
    table.one_of("codec", codec_names(), config_.store.codec);
  }

  void read_topology(TableReader& table) {
    std::string axes;
    table.text("axes", axes);
    if (table.has("axes")) {
      Result<model::Topology> topology = model::Topology::parse(axes);
      if (topology.is_ok()) {
        config_.topology.axes = *std::move(topology);
        if (config_.topology.axes.world_size() > kMaxRanks) {
          table.fault("axes", fmt::format("{} ranks; at most {}",
                                          config_.topology.axes.world_size(), kMaxRanks));
        }
      } else {
        table.fault("axes", topology.status().message());
      }
    }
    table.whole("capacity", {1, planning::kMaxCapacityTokens}, config_.topology.capacity_tokens);
  }

  void read_step(TableReader& table) {
    StepConfig& step = config_.step;
    const bool samples = table.has("samples");
    if (samples && table.has("tokens")) {
      table.fault("samples", "a step has either tokens or samples");
    }
    if (!samples) table.need("tokens");
    step.unit = samples ? planning::StepUnit::kSamples : planning::StepUnit::kTokens;
    table.whole("tokens", {1, planning::kMaxStepUnits}, step.units);
    table.whole("samples", {1, planning::kMaxStepUnits}, step.units);
    table.need("max_sample_tokens");
    table.whole("max_sample_tokens", {1, planning::kMaxSampleTokens}, step.max_sample_tokens);
    table.one_of("over_length", over_length_names(), step.over_length);
  }

  void read_tokens(TableReader& table) {
    TokensConfig& tokens = config_.tokens;
    table.need("tokenizer");
    const TomlNode* tokenizer = table.find("tokenizer");
    if (tokenizer != nullptr && tokenizer->is(TomlType::kTable)) {
      TableReader inner = *table.table("tokenizer");
      inner.need("kind");
      read_tokenizer(inner, "kind");
      read_model(inner);
      read_text_function(inner, {.file = file_, .inputs = inputs_}, tokens);
    } else if (tokenizer != nullptr) {
      read_tokenizer(table, "tokenizer");
      if (tokens.tokenizer == TokenizerKind::kSentencePiece) {
        table.fault("tokenizer",
                    "it needs a model: { kind = \"sentencepiece\", model = \"t.model\" }");
      }
      if (tokens.tokenizer == TokenizerKind::kPython) {
        table.fault("tokenizer",
                    "it needs a function: { kind = \"python\", function = \"module:function\" }");
      }
    }
    if (tokens.model.content != nullptr) tokens.vocab = tokens.model.content->pieces();
    table.whole("vocab", {1, sources::kMaxVocab}, tokens.vocab);
    table.wholes("begin", {.most = sources::kMaxVocab - 1}, kMaxFrameIds, tokens.begin);
    table.wholes("end", {.most = sources::kMaxVocab - 1}, kMaxFrameIds, tokens.end);
  }

  void read_tokenizer(TableReader& table, std::string_view key) {
    table.one_of(key, tokenizer_names(), config_.tokens.tokenizer);
  }

  void read_model(TableReader& table) {
    TextModel& model = config_.tokens.model;
    const bool takes_model = config_.tokens.tokenizer == TokenizerKind::kSentencePiece;
    if (takes_model) table.need("model");
    table.text("model", model.file);
    if (!table.has("model") || !table.has("kind")) return;
    if (!takes_model) {
      return table.fault("model", "is of kind = \"sentencepiece\" alone");
    }
    if (model.file.empty()) return table.fault("model", "an empty path");
    const Result<std::string> bytes = inputs_.read(path_beside(file_, model.file));
    if (!bytes.is_ok()) return table.fault("model", bytes.status().message());
    auto content = sources::SentencePieceModel::parse(*bytes);
    if (!content.is_ok()) {
      return table.fault("model", fmt::format("{}: {}", model.file, content.status().message()));
    }
    model.content = *std::move(content);
  }

  void read_image(TableReader& table) {
    sources::PictureRules& rules = config_.image.rules;
    table.whole("patch", {1, sources::kMaxPatchPx}, rules.patch_px);
    table.whole("merge", {1, sources::kMaxPictureMerge}, rules.merge);
    table.whole("max_patches", {std::uint64_t{rules.merge} * rules.merge, sources::kMaxPatches},
                rules.max_patches);
    std::uint32_t token = 0;
    table.whole("token", {.most = sources::kMaxVocab - 1}, token);
    if (table.has("token")) config_.image.token = token;
  }

  void read_balance(TableReader& table) {
    BalanceConfig& balance = config_.balance;
    table.one_of("strategy", planning::balance_names(), balance.strategy);
    table.text("cost_model", balance.cost_model);
    if (table.has("cost_model")) {
      Result<planning::CostModel> costs = find_costs(balance.cost_model);
      if (costs.is_ok()) {
        balance.costs = *std::move(costs);
      } else {
        table.fault("cost_model", costs.status().message());
      }
    }
    table.whole("min_share", {1, UINT32_MAX}, balance.min_share_tokens);
    table.truth("offload", balance.offload);
  }

  Result<planning::CostModel> find_costs(const std::string& name) const {
    if (!name.ends_with(".toml")) return planning::builtin_cost_model(name);
    const std::string path = path_beside(file_, name);
    BL_ASSIGN_OR_RETURN(const std::string text, inputs_.read(path));
    return planning::parse_cost_model(text, path);
  }

  void read_limits(TableReader& table) {
    LimitsConfig& limits = config_.limits;
    table.bytes("memory", {.least = kLeastMemoryBytes}, limits.memory_bytes);
    std::optional<std::uint64_t> workers;
    table.whole_or("workers", {1, kMaxWorkers}, "auto", workers);
    if (workers) limits.workers = static_cast<std::uint32_t>(*workers);
    table.whole("bad_records", {}, limits.bad_records);
  }

  void read_sources() {
    root_.need("source");
    const TomlNode* sources = root_.find("source");
    if (sources == nullptr) return;
    if (sources->items.empty()) root_.fault("source", "an empty list; a pipeline has sources");
    for (std::size_t i = 0; i < sources->items.size(); ++i) {
      const TomlNode& item = sources->items[i];
      if (!item.is(TomlType::kTable)) {
        root_.fault_at(
            item, "source",
            fmt::format("a table is expected as an element, not {}", to_string(item.type)));
        continue;
      }
      notes_.lines.emplace(source_path(i), item.line);
      TableReader table(item, "source", source_path(i), notes_);
      config_.sources.push_back(
          read_source(table, {.file = file_,
                              .inputs = inputs_,
                              .gives_masks = config_.tokens.tokenizer == TokenizerKind::kPython}));
    }
  }

  ReadNotes notes_;
  TableReader root_;
  const std::string& file_;
  const PipelineInputs& inputs_;
  PipelineConfig config_;
};

}  // namespace

Result<PipelineFile> parse_pipeline(std::string_view text, const std::string& file,
                                    const PipelineInputs& inputs) {
  if (text.size() > kPipelineMaxBytes) {
    return Status::invalid(fmt::format("{}: {} bytes; a pipeline file has at most {}", file,
                                       text.size(), kPipelineMaxBytes));
  }
  BL_ASSIGN_OR_RETURN(const TomlNode root, parse_toml(text, file));
  return PipelineReader(root, file, inputs).read();
}

Result<PipelineFile> read_pipeline(const std::string& path, const PipelineInputs& inputs) {
  BL_ASSIGN_OR_RETURN(const std::string text, inputs.read(path));
  return parse_pipeline(text, path, inputs);
}

std::string path_beside(std::string_view file, std::string_view path) {
  const std::size_t slash = file.rfind('/');
  if (path.starts_with('/') || path.find("://") != std::string_view::npos ||
      slash == std::string_view::npos) {
    return std::string(path);
  }
  return fmt::format("{}{}", file.substr(0, slash + 1), path);
}

}  // namespace batchloom::control
