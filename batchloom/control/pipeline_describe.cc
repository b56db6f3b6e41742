// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/pipeline_describe.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "batchloom/base/quantity.h"
#include "batchloom/control/pipeline_text.h"
#include "batchloom/control/source_files.h"
#include "batchloom/planning/toml_text.h"

namespace batchloom::control {
namespace {

using planning::toml_quoted;

class SettingsList {
 public:
  SettingsList(const PipelineConfig& config, const KeyLines& lines) : lines_(lines) {
    add("seed", fmt::to_string(config.seed));
    add_run(config.run);
    add_store(config.store);
    add_topology(config.topology);
    add_step(config.step);
    add_tokens(config.tokens);
    add_image(config.image, has_pictures(config));
    add_balance(config.balance);
    add_limits(config.limits);
    for (std::size_t i = 0; i < config.sources.size(); ++i) add_source(i, config.sources[i]);
  }

  std::vector<Setting> take() { return std::move(settings_); }

 private:
  void open(std::string name) {
    section_ = name;
    instance_ = std::move(name);
  }

  std::string path_of(std::string_view key) const {
    return instance_.empty() ? std::string(key) : fmt::format("{}.{}", instance_, key);
  }

  /// `note` is for a setting without a value.
  void add(std::string_view key, std::string value, std::string_view note = {}) {
    const bool absent = value.empty();
    const SettingOrigin origin = absent                          ? SettingOrigin::kAbsent
                                 : lines_.contains(path_of(key)) ? SettingOrigin::kSet
                                                                 : SettingOrigin::kDefault;
    settings_.push_back({.section = section_,
                         .owner = owner_,
                         .key = std::string(key),
                         .value = std::move(value),
                         .origin = origin,
                         .note = std::string(absent ? note : "")});
  }

  void add_text(std::string_view key, const std::string& text, std::string_view note) {
    add(key, text.empty() ? "" : toml_quoted(text), note);
  }

  void add_run(const RunConfig& run) {
    open("run");
    add("steps", run.steps ? fmt::to_string(*run.steps) : "", "until the sources stop");
    add("split", toml_quoted(run.split));
  }

  void add_store(const StoreConfig& store) {
    open("store");
    add("url", toml_quoted(store.url));
    add("lead_steps",
        store.lead_steps ? fmt::to_string(*store.lead_steps) : toml_quoted("unlimited"));
    add("codec", quoted_name(codec_names(), store.codec));
    const auto most = store.retain_max_bytes;
    add("retain", most ? fmt::format("{{ max_bytes = \"{}\" }}", bytes_text(*most)) : "",
        "max_bytes; without, the producer waits for no room");
    add_text("endpoint", store.endpoint, "S3 only");
    add_text("region", store.region, "S3 only");
    add_text("profile", store.profile, "S3 only");
  }

  void add_topology(const TopologyConfig& topology) {
    open("topology");
    add("axes", toml_quoted(model::to_string(topology.axes)));
    add("capacity", fmt::to_string(topology.capacity_tokens));
  }

  void add_step(const StepConfig& step) {
    open("step");
    const bool tokens = step.unit == planning::StepUnit::kTokens;
    const std::string units = fmt::to_string(step.units);
    add("tokens", tokens ? units : "", "samples are counted");
    add("samples", tokens ? "" : units, "tokens are counted");
    add("max_sample_tokens", fmt::to_string(step.max_sample_tokens));
    add("over_length", quoted_name(over_length_names(), step.over_length));
  }

  void add_tokens(const TokensConfig& tokens) {
    open("tokens");
    add("tokenizer", toml_tokenizer(tokens));
    add("vocab", fmt::to_string(tokens.vocab));
    add("begin", toml_list(tokens.begin));
    add("end", toml_list(tokens.end));
  }

  void add_image(const ImageConfig& image, bool used) {
    open("image");
    const auto add_number = [&](std::string_view key, std::uint32_t value) {
      add(key, used ? fmt::to_string(value) : "", "no source has pictures");
    };
    add_number("patch", image.rules.patch_px);
    add_number("merge", image.rules.merge);
    add_number("max_patches", image.rules.max_patches);
    add_number("token", image.token.value_or(0));
  }

  void add_balance(const BalanceConfig& balance) {
    open("balance");
    add("strategy", toml_quoted(to_string(balance.strategy)));
    add("cost_model", toml_quoted(balance.cost_model));
    add("min_share", fmt::to_string(balance.min_share_tokens));
    add("offload", fmt::to_string(balance.offload));
  }

  void add_limits(const LimitsConfig& limits) {
    open("limits");
    add("memory", toml_quoted(bytes_text(limits.memory_bytes)));
    add("workers", limits.workers ? fmt::to_string(*limits.workers) : toml_quoted("auto"));
    add("bad_records", fmt::to_string(limits.bad_records));
  }

  void add_source(std::size_t place, const SourceConfig& source) {
    section_ = "source";
    instance_ = source_path(place);
    owner_ = source.name;
    add("name", toml_quoted(source.name));
    add("files", toml_list(source.files));
    add("format", toml_quoted(to_string(source.format)));
    const bool is_text = source.format == SourceFormat::kText;
    add("fields", toml_fields(source), is_text ? "a file's text" : "ids as they lie");
    add("loss_on", quoted_name(loss_names(), source.loss_on));
    add("split", toml_split(source.split));
    add("split_by", toml_split_by(source.split_by));
    add("weight", planning::toml_weight(source.weight));
    add("order", quoted_name(planning::order_names(), source.order));
    add("exhausted", quoted_name(planning::exhausted_names(), source.exhausted));
    const bool repeats = source.exhausted == planning::Exhausted::kRepeat;
    add("epochs", source.epochs != 0 ? fmt::to_string(source.epochs) : "",
        repeats ? "without end" : "one pass");
  }

  const KeyLines& lines_;
  std::string section_;
  std::string instance_;
  std::string owner_;
  std::vector<Setting> settings_;
};

std::string line_of_setting(const Setting& setting) {
  if (setting.origin == SettingOrigin::kAbsent) {
    return fmt::format("# {}: {}\n", setting.key, setting.note);
  }
  const std::string line = fmt::format("{} = {}", setting.key, setting.value);
  return setting.origin == SettingOrigin::kDefault ? fmt::format("{:<40}  # default\n", line)
                                                   : line + '\n';
}

}  // namespace

std::string_view to_string(SettingOrigin origin) {
  switch (origin) {
    case SettingOrigin::kSet: return "set";
    case SettingOrigin::kDefault: return "default";
    case SettingOrigin::kAbsent: return "absent";
  }
  return "unknown";
}

std::string Setting::path() const {
  if (owner.empty()) return key_path();
  return fmt::format("{}.{}.{}", section, owner, key);
}

std::string Setting::key_path() const {
  return section.empty() ? key : fmt::format("{}.{}", section, key);
}

std::vector<Setting> settings_of(const PipelineConfig& config, const KeyLines& lines) {
  return SettingsList(config, lines).take();
}

std::string describe(const PipelineFile& pipeline) {
  std::string text;
  const Setting* before = nullptr;
  const std::vector<Setting> settings = settings_of(pipeline.config, pipeline.lines);
  for (const Setting& setting : settings) {
    const bool opens =
        before != nullptr && (before->section != setting.section || before->owner != setting.owner);
    if (opens) {
      text += setting.owner.empty() ? fmt::format("\n[{}]\n", setting.section)
                                    : fmt::format("\n[[{}]]\n", setting.section);
    }
    text += line_of_setting(setting);
    before = &setting;
  }
  return text;
}

}  // namespace batchloom::control
