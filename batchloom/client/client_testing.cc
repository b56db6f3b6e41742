// SPDX-License-Identifier: Apache-2.0
#include "batchloom/client/client_testing.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "batchloom/base/check.h"
#include "batchloom/base/hash.h"
#include "batchloom/base/random.h"
#include "batchloom/model/plan_digest.h"

namespace batchloom::client {
namespace {

using model::HdpRank;
using model::Piece;
using model::PlanSample;
using model::SampleIndex;
using model::StepPlan;
using model::TaskIndex;
using store::LabelInterval;
using store::RunPiece;
using store::TokenWidth;

std::uint32_t below(Random& random, std::uint64_t n) {
  return static_cast<std::uint32_t>(random.below(n));
}

std::vector<HdpRank> random_ring(Random& random, std::uint32_t ranks) {
  std::vector<HdpRank> all;
  for (HdpRank rank; rank.value < ranks; ++rank) all.push_back(rank);
  const std::size_t size = random.chance(500) ? 1 : 1 + random.below(ranks);
  for (std::size_t i = 0; i < size; ++i) std::swap(all[i], all[i + random.below(all.size() - i)]);
  all.resize(size);
  return all;
}

/// What a rank holds of a task.
struct Share {
  TaskIndex task;
  std::vector<Piece> pieces;
};

/// A plan under way, rank by rank.
struct Draft {
  StepPlan plan;
  std::vector<std::vector<Share>> by_rank;
};

void add_task(Draft& draft, Random& random, const std::vector<SampleIndex>& samples) {
  StepPlan& plan = draft.plan;
  const TaskIndex task(static_cast<std::uint32_t>(plan.tasks.size()));
  const auto ring = random_ring(random, static_cast<std::uint32_t>(draft.by_rank.size()));
  const auto begin = static_cast<std::uint32_t>(plan.members.size());
  plan.members.insert(plan.members.end(), ring.begin(), ring.end());
  plan.tasks.push_back({.members = {begin, static_cast<std::uint32_t>(plan.members.size())},
                        .offload = model::OffloadRatio(below(random, 65'537)),
                        .cost_ns = 1});
  for (const HdpRank rank : ring) draft.by_rank[rank.value].push_back({task, {}});
  for (const SampleIndex sample : samples) {
    const std::uint32_t tokens = plan.samples[sample.value].tokens;
    for (std::uint32_t lo = 0; lo < tokens;) {
      const std::uint32_t hi =
          ring.size() == 1 ? tokens : std::min(tokens, lo + 1 + below(random, tokens));
      draft.by_rank[ring[random.below(ring.size())].value].back().pieces.push_back(
          {sample, lo, hi});
      lo = hi;
    }
  }
}

void add_events(StepPlan& plan, Random& random) {
  std::vector<TaskIndex> forward;
  for (TaskIndex task; task.value < plan.tasks.size(); ++task) {
    plan.events.push_back({task, model::Phase::kForward});
    forward.push_back(task);
    while (!forward.empty() && (random.chance(400) || task.value + 1 == plan.tasks.size())) {
      plan.events.push_back({forward.back(), model::Phase::kBackward});
      forward.pop_back();
    }
  }
}

StepPlan finish(Draft draft) {
  StepPlan plan = std::move(draft.plan);
  for (std::vector<Share>& shares : draft.by_rank) {
    const auto first = static_cast<std::uint32_t>(plan.micro_batches.size());
    for (Share& share : shares) {
      const auto begin = static_cast<std::uint32_t>(plan.pieces.size());
      plan.pieces.insert(plan.pieces.end(), share.pieces.begin(), share.pieces.end());
      plan.micro_batches.push_back(
          {share.task, {begin, static_cast<std::uint32_t>(plan.pieces.size())}});
    }
    plan.ranks.push_back({first, static_cast<std::uint32_t>(plan.micro_batches.size())});
  }
  plan.strategy = "test";
  plan.digest = model::plan_digest(plan);
  return plan;
}

/// `valid` labels of those that exist, as intervals.
std::vector<LabelInterval> random_labels(Random& random, std::uint32_t existing,
                                         std::uint32_t valid) {
  std::vector<LabelInterval> labels;
  for (std::uint32_t label = 0; label < existing; ++label) {
    if (random.below(existing - label) >= valid) continue;
    --valid;
    if (!labels.empty() && labels.back().end == label) {
      ++labels.back().end;
    } else {
      labels.push_back({label, label + 1});
    }
  }
  return labels;
}

Bytes random_bytes(Random& random, std::size_t size) {
  Bytes bytes(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.below(256));
  return bytes;
}

SampleData make_sample(Random& random, const PlanSample& sample, TokenWidth width) {
  SampleData data;
  data.tokens = random_bytes(random, sample.tokens * store::token_bytes(width));
  if (sample.valid_labels == sample.tokens || random.chance(500)) {
    data.next_token = below(random, 65'536);
  }
  const std::uint32_t existing = store::existing_labels(sample.tokens, data.next_token.has_value());
  if (sample.valid_labels != existing || random.chance(300)) {
    data.labels = random_labels(random, existing, sample.valid_labels);
  }
  for (std::uint32_t token = 0; token < sample.tokens; ++token) {
    if (!random.chance(50)) continue;
    const std::uint32_t height = 1 + below(random, 3);
    const std::uint32_t width_pixels = 1 + below(random, 20);
    data.tensors.push_back({.token = token,
                            .info = {.name = "pixels",
                                     .type = store::TensorType::kU8,
                                     .shape = {height, width_pixels}},
                            .bytes = random_bytes(random, std::size_t{height} * width_pixels)});
  }
  return data;
}

std::uint32_t token_at(ByteSpan tokens, TokenWidth width, std::size_t index) {
  const std::byte* in = &tokens[index * store::token_bytes(width)];
  return width == TokenWidth::k16 ? load_le<std::uint16_t>(in) : load_le<std::uint32_t>(in);
}

/// Compares pieces with what their samples hold, and counts their tokens.
class Oracle {
 public:
  explicit Oracle(const TestStep& step) : step_(step) {
    for (std::size_t i = 0; i < step.plan.samples.size(); ++i) {
      place_of_[step.plan.samples[i].id] = i;
      seen_.emplace_back(step.plan.samples[i].tokens, 0);
    }
  }

  /// What is wrong with the piece; empty where nothing is.
  std::string problem(const RunPiece& piece) {
    const auto found = place_of_.find(piece.sample);
    if (found == place_of_.end()) return "of a foreign sample";
    const PlanSample& sample = step_.plan.samples[found->second];
    const SampleData& data = step_.samples[found->second];
    if (piece.sample_tokens != sample.tokens) return "of a sample of another length";
    if (piece.first_position != sample.first_position) return "at another position";
    if (piece.lo >= piece.hi || piece.hi > sample.tokens) return "outside its sample";
    for (std::uint32_t at = piece.lo; at < piece.hi; ++at) ++seen_[found->second][at];
    const std::size_t bytes = store::token_bytes(step_.width);
    const auto tokens =
        ByteSpan(data.tokens).subspan(piece.lo * bytes, (piece.hi - piece.lo) * bytes);
    if (!std::ranges::equal(piece.tokens, tokens)) return "with other tokens";
    return wrong_labels(piece, sample, data) + wrong_tensors(piece, data);
  }

  bool saw_each_token_once() const {
    return std::ranges::all_of(seen_, [](const std::vector<int>& counts) {
      return std::ranges::all_of(counts, [](int count) { return count == 1; });
    });
  }

 private:
  std::string wrong_labels(const RunPiece& piece, const PlanSample& sample,
                           const SampleData& data) const {
    const bool inside = piece.hi < sample.tokens;
    if (piece.has_next_token != (inside || data.next_token)) return "with another end";
    const std::uint32_t next =
        inside ? token_at(data.tokens, step_.width, piece.hi) : data.next_token.value_or(0);
    if (piece.next_token.size() != store::token_bytes(step_.width) ||
        token_at(piece.next_token, step_.width, 0) != next) {
      return "with another look-ahead";
    }
    std::vector<bool> counted(piece.hi - piece.lo, false);
    const std::uint32_t existing =
        store::existing_labels(piece.hi - piece.lo, piece.has_next_token);
    std::vector<LabelInterval> labels = piece.labels;
    if (piece.all_labels && !labels.empty()) return "with all labels and some";
    if (piece.all_labels) labels = {{0, existing}};
    for (std::size_t i = 1; i < labels.size(); ++i) {
      if (labels[i].begin <= labels[i - 1].end) return "with label intervals that are not apart";
    }
    for (const auto& [begin, end] : labels) {
      if (begin >= end && !piece.all_labels) return "with an empty label interval";
      if (end > existing) return "with a label that does not exist";
      std::fill(counted.begin() + begin, counted.begin() + end, true);
    }
    for (std::uint32_t label = piece.lo; label < piece.hi; ++label) {
      if (counted[label - piece.lo] != data.has_label(sample, label)) return "with other labels";
    }
    return "";
  }

  static std::string wrong_tensors(const RunPiece& piece, const SampleData& data) {
    auto next = piece.tensors.begin();
    for (const SampleData::Tensor& tensor : data.tensors) {
      if (tensor.token < piece.lo || tensor.token >= piece.hi) continue;
      if (next == piece.tensors.end()) return "without a tensor";
      if (piece.lo + next->token != tensor.token || next->info != tensor.info ||
          !std::ranges::equal(next->bytes, tensor.bytes)) {
        return "with another tensor";
      }
      ++next;
    }
    return next == piece.tensors.end() ? "" : "with too many tensors";
  }

  const TestStep& step_;
  std::map<model::SampleId, std::size_t> place_of_;
  std::vector<std::vector<int>> seen_;
};

/// What is wrong with how the rank's micro-batches are laid out; empty where nothing is.
std::string wrong_layout(const StepBatch& batch, const StepPlan& plan, HdpRank rank) {
  const auto micro_batches = plan.micro_batches_of(rank);
  if (batch.micro_batches.size() != micro_batches.size()) return "another number of micro-batches";
  std::map<std::uint32_t, std::uint32_t> by_task;
  for (std::uint32_t i = 0; i < micro_batches.size(); ++i) {
    const store::RunMicroBatch& got = batch.micro_batches[i];
    const model::Task& task = plan.tasks[micro_batches[i].task.value];
    by_task[got.task] = i;
    if (got.task != micro_batches[i].task.value || got.offload != task.offload ||
        !std::ranges::equal(got.ring, plan.members_of(task))) {
      return fmt::format("micro-batch {} of another task", i);
    }
    const auto same = [&](const RunPiece& piece, const Piece& planned) {
      return piece.sample == plan.samples[planned.sample.value].id && piece.lo == planned.lo &&
             piece.hi == planned.hi;
    };
    if (!std::ranges::equal(got.pieces, plan.pieces_of(micro_batches[i]), same)) {
      return fmt::format("micro-batch {} with other pieces", i);
    }
    for (std::size_t next = 1; next < got.pieces.size(); ++next) {
      const ByteSpan before = got.pieces[next - 1].tokens;
      if (before.data() + before.size() != got.pieces[next].tokens.data()) {
        return fmt::format("micro-batch {} with gaps between its tokens", i);
      }
    }
  }
  std::vector<store::RunEvent> events;
  for (const model::Event& event : plan.events) {
    const auto mine = by_task.find(event.task.value);
    if (mine != by_task.end()) events.push_back({mine->second, event.phase});
  }
  return batch.events == events ? "" : "other events";
}

}  // namespace

store::SampleContent SampleData::content() const {
  store::SampleContent content;
  content.tokens = tokens;
  content.next_token = next_token;
  content.labels = labels;
  for (const Tensor& tensor : tensors) {
    content.tensors.push_back({.token = tensor.token, .info = tensor.info, .bytes = tensor.bytes});
  }
  return content;
}

bool SampleData::has_label(const PlanSample& sample, std::uint32_t label) const {
  if (!labels) return label < store::existing_labels(sample.tokens, next_token.has_value());
  return std::ranges::any_of(*labels, [&](const LabelInterval& interval) {
    return interval.begin <= label && label < interval.end;
  });
}

StepPlan random_layout(const std::vector<PlanSample>& samples, std::uint32_t ranks,
                       std::uint64_t seed) {
  Random random(seed);
  Draft draft;
  draft.plan.topology = model::Topology::create({{model::Axis::kDp, ranks}}).value();
  draft.plan.samples = samples;
  draft.by_rank.resize(ranks);
  for (const PlanSample& sample : samples) draft.plan.global_valid_labels += sample.valid_labels;
  for (std::uint32_t next = 0; next < samples.size();) {
    std::vector<SampleIndex> together;
    for (std::uint64_t n = 1 + random.below(3); n > 0 && next < samples.size(); --n, ++next) {
      together.emplace_back(next);
    }
    add_task(draft, random, together);
    if (random.chance(200)) add_task(draft, random, {});
  }
  add_events(draft.plan, random);
  return finish(std::move(draft));
}

TestStep make_step(const TestStepShape& shape) {
  Random random(shape.seed);
  std::vector<PlanSample> samples;
  for (std::uint32_t i = 0; i < shape.samples; ++i) {
    PlanSample& sample = samples.emplace_back();
    sample.id = {.source = model::SourceId(below(random, 3)),
                 .epoch = model::Epoch(0),
                 .index = model::RecordIndex(shape.seed * 1000 + i),
                 .part = model::PartIndex(below(random, 2))};
    sample.tokens = 1 + below(random, shape.max_tokens);
    sample.valid_labels =
        random.chance(300) ? sample.tokens : below(random, std::uint64_t{sample.tokens} + 1);
    sample.first_position = random.below(1'000);
  }
  TestStep step{.plan = random_layout(samples, shape.ranks, random.next()),
                .width = shape.width,
                .samples = {}};
  for (const PlanSample& sample : samples) {
    step.samples.push_back(make_sample(random, sample, shape.width));
  }
  return step;
}

namespace {

bool is_ring(const StepPlan& plan, const model::MicroBatch& micro_batch) {
  return plan.tasks[micro_batch.task.value].members.size() > 1;
}

/// The step of the first seed that `is_right`.
TestStep find_step(TestStepShape shape, const std::function<bool(const StepPlan&)>& is_right) {
  for (;; ++shape.seed) {
    TestStep step = make_step(shape);
    if (is_right(step.plan)) return step;
  }
}

}  // namespace

TestStep make_whole_step(TestStepShape shape) {
  return find_step(shape, [](const StepPlan& plan) {
    return std::ranges::none_of(
        plan.micro_batches, [&](const auto& micro_batch) { return is_ring(plan, micro_batch); });
  });
}

TestStep make_ring_step(TestStepShape shape) {
  return find_step(shape, [](const StepPlan& plan) {
    return std::ranges::any_of(plan.micro_batches_of(HdpRank(0)),
                               [&](const auto& micro_batch) { return is_ring(plan, micro_batch); });
  });
}

TestStep small_step(std::uint64_t seed, std::uint32_t ranks) {
  return make_step({.seed = seed, .ranks = ranks, .samples = 4, .max_tokens = 20});
}

testing::AssertionResult hold_step(std::span<const StepPtr> batches, const TestStep& step,
                                   const StepPlan& plan) {
  if (batches.size() != plan.ranks.size()) {
    return testing::AssertionFailure() << batches.size() << " batches";
  }
  Oracle oracle(step);
  for (HdpRank rank; rank.value < batches.size(); ++rank) {
    const auto wrong = [&](const std::string& what) {
      return testing::AssertionFailure() << "rank " << rank.value << ": " << what;
    };
    const StepPtr& batch = batches[rank.value];
    if (batch == nullptr) return wrong("no batch");
    if (batch->plan_digest != plan.digest) return wrong("another plan digest");
    if (batch->samples_digest != store::samples_digest(plan.samples)) return wrong("other samples");
    if (batch->global_valid_labels != plan.global_valid_labels) return wrong("other valid labels");
    if (batch->token_width != step.width) return wrong("another token width");
    if (std::string layout = wrong_layout(*batch, plan, rank); !layout.empty()) {
      return wrong(layout);
    }
    for (const store::RunMicroBatch& micro_batch : batch->micro_batches) {
      for (const RunPiece& piece : micro_batch.pieces) {
        const std::string problem = oracle.problem(piece);
        if (problem.empty()) continue;
        return wrong(fmt::format("tokens [{}, {}) of sample {} {}", piece.lo, piece.hi,
                                 to_string(piece.sample), problem));
      }
    }
  }
  if (!oracle.saw_each_token_once()) {
    return testing::AssertionFailure() << "a token is on no rank, or on two";
  }
  return testing::AssertionSuccess();
}

TestProducer::TestProducer(const store::Stream& stream, const std::string& name)
    : stream_(stream),
      session_(store::ProducerSession::open(stream, name, {}).value()),
      next_seq_(session_->next_seq()) {}

store::CommitReceipt TestProducer::append(std::span<const TestStep> pack) {
  std::vector<std::vector<store::SampleContent>> contents(pack.size());
  std::vector<std::vector<model::SampleMeta>> origins(pack.size());
  std::vector<store::StepContent> steps;
  for (std::size_t i = 0; i < pack.size(); ++i) {
    for (std::size_t sample = 0; sample < pack[i].samples.size(); ++sample) {
      const PlanSample& planned = pack[i].plan.samples[sample];
      contents[i].push_back(pack[i].samples[sample].content());
      origins[i].push_back({.id = planned.id,
                            .tokens = planned.tokens,
                            .valid_labels = planned.valid_labels,
                            .first_position = planned.first_position,
                            .image_patches = {},
                            .place = {}});
    }
    steps.push_back({.plan = &pack[i].plan, .samples = contents[i], .origins = origins[i]});
  }
  store::BatchOptions options;
  options.identity = {.stream = stream_.uuid(),
                      .producer = session_->producer(),
                      .term = session_->term(),
                      .seq = next_seq_};
  options.token_width = pack.front().width;
  options.origin.sources = {{"a", 1}, {"b", 2}, {"c", 3}};
  store::BuiltBatch built = store::build_batch(options, steps).value();
  const store::BatchInfo info{.seq = next_seq_,
                              .steps = built.steps,
                              .ranks = built.ranks,
                              .run_table = std::move(built.run_table)};
  const store::PendingBatch pending = session_->upload(info, built.parts, {}).value();
  ++next_seq_;
  payload_bytes_ += built.payload_bytes;
  steps_.insert(steps_.end(), pack.begin(), pack.end());
  return session_->commit(std::span(&pending, 1), {}).value();
}

void TestProducer::append_small(std::uint32_t objects, std::uint32_t pack, std::uint32_t ranks) {
  for (; objects > 0; --objects) {
    std::vector<TestStep> steps;
    for (std::uint32_t i = 0; i < pack; ++i) {
      steps.push_back(small_step(steps_.size() + i, ranks));
    }
    append(steps);
  }
}

}  // namespace batchloom::client
