// SPDX-License-Identifier: Apache-2.0
#include "batchloom/simulator/synthetic.h"

#include <fmt/format.h>

#include <algorithm>

#include "batchloom/base/hash.h"
#include "batchloom/base/random.h"
#include "batchloom/model/plan_digest.h"

namespace batchloom::simulator {
namespace {

using model::HdpRank;
using model::PlanSample;
using model::SampleIndex;
using model::StepPlan;
using store::SampleContent;

constexpr std::uint32_t kVocabulary = 60'000;
constexpr double kObjectTokensMax = 1 << 30;

/// Draws of one sample, each from a stream of its own.
std::uint64_t draw(std::uint64_t seed, const model::SampleId& id, std::uint64_t what) {
  return mix64(mix64(seed ^ (id.index.value + 1) * 0x9e3779b97f4a7c15) ^
               (std::uint64_t{id.source.value} << 32 | what));
}

bool ends_record(std::uint64_t seed, const model::SampleId& id) {
  return draw(seed, id, 1) % 4 == 0;
}

/// One sample in four does not count its first part, and one in sixteen counts nothing.
std::optional<std::vector<store::LabelInterval>> labels_of(std::uint64_t seed,
                                                           const PlanSample& sample) {
  const std::uint64_t kind = draw(seed, sample.id, 2) % 16;
  const std::uint32_t labels = sample.tokens - (ends_record(seed, sample.id) ? 1 : 0);
  if (kind == 0) return std::vector<store::LabelInterval>();
  if (kind > 3 || labels < 4) return std::nullopt;
  const auto begin = static_cast<std::uint32_t>(draw(seed, sample.id, 3) % (labels / 2));
  return std::vector<store::LabelInterval>{{begin, labels / 2}, {labels / 2 + 1, labels}};
}

std::uint32_t valid_labels(std::uint64_t seed, const PlanSample& sample) {
  const auto intervals = labels_of(seed, sample);
  if (!intervals) return sample.tokens - (ends_record(seed, sample.id) ? 1 : 0);
  std::uint32_t sum = 0;
  for (const store::LabelInterval& interval : *intervals) sum += interval.end - interval.begin;
  return sum;
}

/// Appends one micro-batch of `pieces` to `rank`, which must be the last one so far.
void add_micro_batch(StepPlan& plan, std::uint32_t task, const std::vector<model::Piece>& pieces) {
  const auto begin = static_cast<std::uint32_t>(plan.pieces.size());
  plan.pieces.insert(plan.pieces.end(), pieces.begin(), pieces.end());
  plan.micro_batches.push_back(
      {model::TaskIndex(task), {begin, static_cast<std::uint32_t>(plan.pieces.size())}});
}

void add_task(StepPlan& plan, std::uint32_t first_member, std::uint32_t members) {
  const auto begin = static_cast<std::uint32_t>(plan.members.size());
  for (std::uint32_t i = 0; i < members; ++i) plan.members.emplace_back(first_member + i);
  plan.tasks.push_back({.members = {begin, begin + members}, .offload = {}, .cost_ns = 1});
}

void add_events(StepPlan& plan) {
  const auto tasks = static_cast<std::uint32_t>(plan.tasks.size());
  for (const model::Phase phase : {model::Phase::kForward, model::Phase::kBackward}) {
    for (std::uint32_t task = 0; task < tasks; ++task) {
      plan.events.push_back({model::TaskIndex(task), phase});
    }
  }
}

std::uint32_t long_tokens(const SyntheticConfig& config) {
  return config.long_tokens == 0 ? config.ranks * config.record_tokens : config.long_tokens;
}

std::uint64_t load_id(ByteSpan tokens, std::size_t index, std::size_t width) {
  return width == 2 ? load_le<std::uint16_t>(tokens.data() + 2 * index)
                    : load_le<std::uint32_t>(tokens.data() + 4 * index);
}

}  // namespace

/// Random token ids, longer than the longest sample by the places where one may begin.
struct SyntheticBatches::Pool {
  Bytes ids;
};

SyntheticBatches::SyntheticBatches(const SyntheticConfig& config, std::unique_ptr<Pool> pool)
    : config_(config), pool_(std::move(pool)) {}

SyntheticBatches::~SyntheticBatches() = default;

Result<std::unique_ptr<SyntheticBatches>> SyntheticBatches::create(const SyntheticConfig& config) {
  const double tokens =
      1.0 * config.steps_per_object *
      (1.0 * config.ranks * (1.0 + config.records_per_run) * config.record_tokens +
       config.long_tokens);
  if (config.ranks == 0 || config.steps_per_object == 0 || config.records_per_run == 0 ||
      config.pool_places == 0 || config.record_tokens < 2 || tokens > kObjectTokensMax) {
    return Status::invalid(
        fmt::format("synthetic batches of {} ranks x {} steps x {} records x {} tokens out of {} "
                    "places: each at least 1, a record at least 2 tokens, and an object at most "
                    "{:.0f} tokens",
                    config.ranks, config.steps_per_object, config.records_per_run,
                    config.record_tokens, config.pool_places, kObjectTokensMax));
  }
  if (config.long_tokens % config.ranks != 0) {
    return Status::invalid(fmt::format("a long sample of {} tokens for {} ranks: it is cut evenly",
                                       config.long_tokens, config.ranks));
  }
  const std::uint64_t longest =
      config.ring ? std::max(long_tokens(config), config.record_tokens) : config.record_tokens;
  const auto width = static_cast<std::size_t>(config.token_width);
  auto pool = std::make_unique<Pool>();
  pool->ids.resize((config.pool_places + longest + 1) * width);
  Random random(mix64(config.seed));
  for (std::size_t i = 0; i < pool->ids.size(); i += width) {
    const std::uint64_t id = random.below(kVocabulary);
    for (std::size_t byte = 0; byte < width; ++byte)
      pool->ids[i + byte] = static_cast<std::byte>(id >> (8 * byte) & 0xff);
  }
  return std::unique_ptr<SyntheticBatches>(new SyntheticBatches(config, std::move(pool)));
}

std::uint32_t SyntheticBatches::samples_per_step() const {
  return config_.ranks * config_.records_per_run + (config_.ring ? 1 : 0);
}

StepPlan SyntheticBatches::plan(store::Seq seq, std::uint32_t position) const {
  StepPlan plan;
  plan.topology =
      model::Topology::create({{.axis = model::Axis::kDp, .extent = config_.ranks}}).value();
  plan.strategy = "synthetic";
  const std::uint64_t step = seq.value * config_.steps_per_object + position;
  for (std::uint32_t i = 0; i < samples_per_step(); ++i) {
    PlanSample sample;
    sample.id.source = config_.source;
    sample.id.index = model::RecordIndex(step * samples_per_step() + i);
    const bool is_long = i == config_.ranks * config_.records_per_run;
    sample.tokens = is_long ? long_tokens(config_) : config_.record_tokens;
    sample.first_position = draw(config_.seed, sample.id, 4) % 1000;
    sample.valid_labels = valid_labels(config_.seed, sample);
    plan.global_valid_labels += sample.valid_labels;
    plan.samples.push_back(sample);
  }
  for (std::uint32_t rank = 0; rank < config_.ranks; ++rank) add_task(plan, rank, 1);
  if (config_.ring) add_task(plan, 0, config_.ranks);
  for (std::uint32_t rank = 0; rank < config_.ranks; ++rank) {
    const auto first = static_cast<std::uint32_t>(plan.micro_batches.size());
    std::vector<model::Piece> pieces;
    for (std::uint32_t i = 0; i < config_.records_per_run; ++i) {
      pieces.push_back({SampleIndex(rank * config_.records_per_run + i), 0, config_.record_tokens});
    }
    add_micro_batch(plan, rank, pieces);
    if (config_.ring) {
      const SampleIndex last(static_cast<std::uint32_t>(plan.samples.size() - 1));
      const std::uint32_t share = long_tokens(config_) / config_.ranks;
      add_micro_batch(plan, config_.ranks, {{last, rank * share, (rank + 1) * share}});
    }
    plan.ranks.push_back({first, static_cast<std::uint32_t>(plan.micro_batches.size())});
  }
  add_events(plan);
  plan.digest = model::plan_digest(plan);
  return plan;
}

std::vector<SampleContent> SyntheticBatches::contents(const StepPlan& plan) const {
  const auto width = static_cast<std::size_t>(config_.token_width);
  std::vector<SampleContent> contents;
  contents.reserve(plan.samples.size());
  for (const PlanSample& sample : plan.samples) {
    const std::size_t place = draw(config_.seed, sample.id, 0) % config_.pool_places;
    SampleContent& content = contents.emplace_back();
    content.tokens = ByteSpan(pool_->ids).subspan(place * width, sample.tokens * width);
    if (!ends_record(config_.seed, sample.id)) {
      content.next_token =
          static_cast<std::uint32_t>(load_id(pool_->ids, place + sample.tokens, width));
    }
    content.labels = labels_of(config_.seed, sample);
  }
  return contents;
}

SyntheticBatches::Object SyntheticBatches::object(store::Seq seq) const {
  Object object;
  for (std::uint32_t position = 0; position < config_.steps_per_object; ++position) {
    const StepPlan& plan = object.plans.emplace_back(this->plan(seq, position));
    object.samples.push_back(contents(plan));
    std::vector<model::SampleMeta>& origins = object.origins.emplace_back();
    for (const PlanSample& sample : plan.samples) {
      origins.push_back(
          {.id = sample.id,
           .tokens = sample.tokens,
           .valid_labels = sample.valid_labels,
           .first_position = sample.first_position,
           .image_patches = {},
           .place = {.shard = {}, .offset_bytes = sample.id.index.value, .size_bytes = 1}});
    }
  }
  return object;
}

std::vector<store::StepContent> SyntheticBatches::Object::steps() const {
  std::vector<store::StepContent> steps;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    steps.push_back({.plan = &plans[i], .samples = samples[i], .origins = origins[i]});
  }
  return steps;
}

store::BatchOrigin SyntheticBatches::origin() const {
  store::BatchOrigin origin;
  for (std::uint32_t source = 0; source <= config_.source.value; ++source) {
    origin.sources.push_back(
        {.name = fmt::format("synthetic-{}", source), .digest = mix64(config_.seed ^ source)});
  }
  origin.planner = "synthetic";
  return origin;
}

namespace {

/// The piece as a rank must get it.
store::RunPiece expected_piece(const PlanSample& sample, const SampleContent& content,
                               const model::Piece& piece, std::size_t width, Bytes& look_ahead) {
  store::RunPiece result;
  result.sample = sample.id;
  result.sample_tokens = sample.tokens;
  result.lo = piece.lo;
  result.hi = piece.hi;
  result.first_position = sample.first_position;
  result.tokens = content.tokens.subspan(piece.lo * width, piece.tokens() * width);
  const bool inside = piece.hi < sample.tokens;
  result.has_next_token = inside || content.next_token.has_value();
  const std::uint64_t next =
      inside ? load_id(content.tokens, piece.hi, width) : content.next_token.value_or(0);
  look_ahead.resize(width);
  for (std::size_t byte = 0; byte < width; ++byte)
    look_ahead[byte] = static_cast<std::byte>(next >> (8 * byte) & 0xff);
  result.next_token = look_ahead;
  result.all_labels = !content.labels.has_value();
  for (const store::LabelInterval& labels :
       content.labels.value_or(std::vector<store::LabelInterval>())) {
    const std::uint32_t begin = std::max(labels.begin, piece.lo);
    const std::uint32_t end = std::min(labels.end, piece.hi);
    if (begin < end) result.labels.push_back({begin - piece.lo, end - piece.lo});
  }
  return result;
}

/// The plan's events of the tasks that these micro-batches are of, in its order.
std::vector<store::RunEvent> expected_events(
    const StepPlan& plan, const std::vector<store::RunMicroBatch>& micro_batches) {
  std::vector<store::RunEvent> events;
  for (const model::Event& event : plan.events) {
    for (std::uint32_t i = 0; i < micro_batches.size(); ++i) {
      if (micro_batches[i].task == event.task.value) events.push_back({i, event.phase});
    }
  }
  return events;
}

/// The labels that count: the same ones, however they are written.
std::vector<store::LabelInterval> counted_labels(const store::RunPiece& piece) {
  if (!piece.all_labels) return piece.labels;
  const std::uint32_t existing = piece.hi - piece.lo - (piece.has_next_token ? 0 : 1);
  if (existing == 0) return {};
  return {{0, existing}};
}

void add_tensor(Digest& digest, const store::RunPiece::Tensor& tensor) {
  digest.add_int(tensor.token);
  digest.add_text(tensor.info.name);
  digest.add_int(static_cast<std::uint8_t>(tensor.info.type));
  digest.add_int(std::uint64_t{tensor.info.shape.size()});
  for (const std::uint32_t extent : tensor.info.shape) digest.add_int(extent);
  digest.add(tensor.bytes);
}

void add_piece(Digest& digest, const store::RunPiece& piece) {
  digest.add_int(piece.sample.source.value);
  digest.add_int(piece.sample.epoch.value);
  digest.add_int(piece.sample.index.value);
  digest.add_int(piece.sample.part.value);
  digest.add_int(piece.sample_tokens);
  digest.add_int(piece.lo);
  digest.add_int(piece.hi);
  digest.add_int(piece.first_position);
  digest.add(piece.tokens);
  digest.add_int(static_cast<std::uint8_t>(piece.has_next_token));
  digest.add(piece.next_token);
  const std::vector<store::LabelInterval> counted = counted_labels(piece);
  digest.add_int(std::uint64_t{counted.size()});
  for (const store::LabelInterval& labels : counted) {
    digest.add_int(labels.begin);
    digest.add_int(labels.end);
  }
  digest.add_int(std::uint64_t{piece.tensors.size()});
  for (const store::RunPiece::Tensor& tensor : piece.tensors) add_tensor(digest, tensor);
}

}  // namespace

std::uint64_t content_hash(const RankContent& content) {
  Digest digest;
  digest.add_int(content.global_valid_labels);
  digest.add_int(std::uint64_t{content.micro_batches.size()});
  for (const store::RunMicroBatch& micro_batch : content.micro_batches) {
    digest.add_int(micro_batch.offload.value);
    digest.add_int(std::uint64_t{micro_batch.ring.size()});
    for (const HdpRank member : micro_batch.ring) digest.add_int(member.value);
    digest.add_int(std::uint64_t{micro_batch.pieces.size()});
    for (const store::RunPiece& piece : micro_batch.pieces) add_piece(digest, piece);
  }
  for (const store::RunEvent& event : content.events) {
    digest.add_int(event.micro_batch);
    digest.add_int(static_cast<std::uint8_t>(event.phase));
  }
  return digest.value();
}

std::uint64_t SyntheticBatches::expected_hash(store::Seq seq, std::uint32_t position,
                                              HdpRank rank) const {
  const StepPlan step = plan(seq, position);
  const std::vector<SampleContent> samples = contents(step);
  const auto width = static_cast<std::size_t>(config_.token_width);
  std::vector<Bytes> look_ahead(step.pieces.size());
  std::vector<store::RunMicroBatch> expected;
  for (const model::MicroBatch& planned : step.micro_batches_of(rank)) {
    store::RunMicroBatch& micro_batch = expected.emplace_back();
    const model::Task& task = step.tasks[planned.task.value];
    micro_batch.task = planned.task.value;
    micro_batch.offload = task.offload;
    const auto members = step.members_of(task);
    micro_batch.ring.assign(members.begin(), members.end());
    for (std::uint32_t i = planned.pieces.begin; i < planned.pieces.end; ++i) {
      const model::Piece& piece = step.pieces[i];
      micro_batch.pieces.push_back(expected_piece(step.samples[piece.sample.value],
                                                  samples[piece.sample.value], piece, width,
                                                  look_ahead[i]));
    }
  }
  return content_hash({.global_valid_labels = step.global_valid_labels,
                       .micro_batches = expected,
                       .events = expected_events(step, expected)});
}

}  // namespace batchloom::simulator
