// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "batchloom/control/pipeline_testing.h"

namespace batchloom::control {
namespace {

using planning::Schedule;
using planning::Weight;
using planning::WeightPoint;

bool toss(Random& random) {
  return random.below(2) == 0;
}

std::uint32_t small(Random& random, std::uint64_t least, std::uint64_t most) {
  return static_cast<std::uint32_t>(least + random.below(most - least + 1));
}

std::string any_text(Random& random) {
  static const std::vector<std::string> kTexts = {"x", "a \"quoted\\\" one", "\t\x01\x7f", "ä ö"};
  return kTexts[random.below(kTexts.size())];
}

model::Topology any_axes(Random& random) {
  std::vector<model::AxisExtent> axes;
  for (const model::Axis axis :
       {model::Axis::kDp, model::Axis::kTp, model::Axis::kCp, model::Axis::kPp}) {
    if (toss(random)) axes.push_back({axis, small(random, 1, 3)});
  }
  if (axes.empty()) axes.push_back({model::Axis::kDp, 2});
  return model::Topology::create(axes).value();
}

Schedule any_schedule(Random& random) {
  std::vector<WeightPoint> points = {
      {model::Step(random.below(2) * random.below(100)), Weight(1 + random.below(1'000'000'000))}};
  while (random.below(3) == 0) {
    points.push_back({points.back().step + 1 + random.below(1'000'000), Weight(1 + random.below(9)),
                      static_cast<planning::Ramp>(random.below(3))});
  }
  return Schedule::create(points).value();
}

void add_any_store(Random& random, StoreConfig& store) {
  store.url = toss(random) ? "./" + any_text(random) : "s3://bucket/prefix";
  if (toss(random)) store.lead_steps.reset();
  if (toss(random)) store.retain_max_bytes = 1 + random.below(std::uint64_t{1} << 62);
  if (!store.url.starts_with("s3://")) return;
  if (toss(random)) store.endpoint = any_text(random);
  if (toss(random)) store.region = any_text(random);
  if (toss(random)) store.profile = any_text(random);
}

void add_any_step(Random& random, PipelineConfig& config) {
  config.topology.axes = any_axes(random);
  config.topology.capacity_tokens = small(random, 64, 10'000);
  const std::uint32_t room = ranks_of_a_part(config) * config.topology.capacity_tokens;
  config.step.max_sample_tokens = small(random, 1, room);
  config.step.unit = static_cast<planning::StepUnit>(random.below(2));
  config.step.units = config.step.max_sample_tokens + random.below(100'000);
  config.step.over_length = static_cast<OverLength>(random.below(3));
}

sources::RecordFields any_fields(Random& random) {
  switch (random.below(3)) {
    case 0: return sources::TextField{any_text(random)};
    case 1: return sources::AnswerFields{"1 " + any_text(random), "2 " + any_text(random)};
    default: break;
  }
  const std::string mask = toss(random) ? "m " + any_text(random) : "";
  return sources::TokenFields{any_text(random), mask};
}

/// What may be counted besides all.
sources::LossOn special_loss(const SourceConfig& source) {
  if (!source.fields) return sources::LossOn::kAll;
  if (std::holds_alternative<sources::AnswerFields>(*source.fields)) {
    return sources::LossOn::kAnswer;
  }
  const auto* tokens = std::get_if<sources::TokenFields>(&*source.fields);
  return tokens == nullptr || tokens->loss_mask.empty() ? sources::LossOn::kAll
                                                        : sources::LossOn::kMask;
}

SourceConfig any_source(Random& random, std::size_t place) {
  SourceConfig source;
  source.name = fmt::format("source-{}", place);
  if (toss(random)) {
    source.files = {"ids/*"};
    source.paths = {"ids/a.bin", "ids/b.bin"};
    source.format = SourceFormat::kMegatron;
  } else {
    source.files = {"data/code.jsonl", "data/docs-*.jsonl"};
    source.paths = {"data/code.jsonl", "data/docs-0.jsonl", "data/docs-1.jsonl"};
    source.fields = any_fields(random);
  }
  if (random.below(4) == 0) {
    source.files = source.paths = {"data/x.tar"};
    source.format = SourceFormat::kTar;
    source.fields = sources::TextField{any_text(random)};
    source.picture = "p " + any_text(random);
  }
  if (toss(random)) source.loss_on = special_loss(source);
  if (toss(random)) source.split = {{"train", 1 + random.below(999)}, {"valid", random.below(2)}};
  if (toss(random)) source.split_by.rule = SplitRule::kNumber;
  if (source.fields && toss(random)) source.split_by = {SplitRule::kField, "author"};
  source.weight = any_schedule(random);
  source.order = static_cast<planning::Order>(random.below(2));
  source.exhausted = static_cast<planning::Exhausted>(random.below(4));
  if (source.exhausted == planning::Exhausted::kRepeat) source.epochs = small(random, 0, 9);
  return source;
}

void add_any_tokens(Random& random, PipelineConfig& config) {
  const bool text = std::ranges::any_of(config.sources, [](const SourceConfig& source) {
    return source.fields && !std::holds_alternative<sources::TokenFields>(*source.fields);
  });
  config.tokens.tokenizer = text ? TokenizerKind::kBytes : TokenizerKind::kIds;
  config.tokens.vocab = small(random, 300, 100'000);
  while (toss(random)) config.tokens.begin.push_back(small(random, 0, 299));
  while (toss(random)) config.tokens.end.push_back(small(random, 0, 299));
}

void add_any_image(Random& random, PipelineConfig& config) {
  if (!has_pictures(config)) return;
  const std::uint32_t room = config.step.max_sample_tokens;
  if (config.tokens.begin.size() >= room) config.tokens.begin.clear();
  sources::PictureRules& rules = config.image.rules;
  rules.patch_px = small(random, 1, 256);
  rules.merge = small(random, 1, 8);
  const std::uint32_t patches_of_cell = rules.merge * rules.merge;
  const std::uint64_t cells = std::min<std::uint64_t>(room - config.tokens.begin.size(),
                                                      sources::kMaxPatches / patches_of_cell);
  rules.max_patches = small(random, 1, cells) * patches_of_cell;
  config.image.token = config.tokens.vocab++;
}

}  // namespace

PipelineConfig any_pipeline(Random& random) {
  PipelineConfig config;
  config.seed = random.below(std::uint64_t{1} << 63);
  if (toss(random)) config.run.steps = 1 + random.below(1'000'000);
  add_any_store(random, config.store);
  config.balance.strategy = static_cast<planning::Balance>(random.below(5));
  if (toss(random)) config.balance.cost_model = "bytescale-fig6";
  config.balance.costs = planning::builtin_cost_model(config.balance.cost_model).value();
  config.balance.min_share_tokens = small(random, 1, 5'000);
  config.balance.offload = toss(random);
  add_any_step(random, config);
  config.limits.memory_bytes = (1 + random.below(1 << 20)) << 20;
  if (toss(random)) config.limits.workers = small(random, 1, 4096);
  config.limits.bad_records = random.below(1'000);
  const std::uint64_t sources = 1 + random.below(4);
  for (std::uint64_t i = 0; i < sources; ++i) {
    SourceConfig source = any_source(random, i);
    for (const SourceConfig& other : config.sources) {
      if (other.paths != source.paths) continue;  // A shard is read in one way.
      source.fields = other.fields;
      source.picture = other.picture;
      source.loss_on = other.loss_on;
      source.split_by = other.split_by;
    }
    config.sources.push_back(std::move(source));
  }
  add_any_tokens(random, config);
  add_any_image(random, config);
  return config;
}

}  // namespace batchloom::control
