// SPDX-License-Identifier: Apache-2.0
#include "batchloom/construction/corpus_testing.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "batchloom/base/check.h"
#include "batchloom/base/random.h"
#include "batchloom/planning/builtin_costs.h"
#include "batchloom/planning/graph_layout.h"
#include "batchloom/planning/sample_graph.h"

namespace batchloom::construction {
namespace {

using model::SampleId;
using model::SampleMeta;
using planning::PlannedStep;
using store::RunPiece;

constexpr std::int64_t kNoLabel = -100;

std::uint32_t below(Random& random, std::uint64_t n) {
  return static_cast<std::uint32_t>(random.below(n));
}

std::vector<LearnedInterval> random_mask(Random& random, std::size_t tokens) {
  std::vector<std::uint8_t> mask(tokens);
  bool learned = random.chance(500);
  for (std::uint8_t& row : mask) {
    if (random.chance(200)) learned = !learned;
    row = learned ? 1 : 0;
  }
  return learned_intervals(mask);
}

/// The label of token `i` of a piece, as a trainer reckons it.
std::int64_t label_of(const RunPiece& piece, std::uint32_t i, store::TokenWidth width) {
  const bool counts =
      piece.all_labels || std::ranges::any_of(piece.labels, [i](const store::LabelInterval& label) {
        return label.begin <= i && i < label.end;
      });
  if (!counts) return kNoLabel;
  const TokenSpan tokens(piece.tokens, width);
  if (i + 1 < tokens.size()) return tokens[i + 1];
  return piece.has_next_token ? TokenSpan(piece.next_token, width)[0] : kNoLabel;
}

}  // namespace

Corpus::Corpus(const CorpusShape& shape) : shape_(shape) {
  Random random(shape.seed);
  for (std::uint32_t source = 0; source < shape.sources; ++source) {
    sources_.push_back({fmt::format("source-{}", source), shape.records});
    std::vector<Record>& records = records_.emplace_back(shape.records);
    for (Record& record : records) {
      record.tokens.resize(1 + below(random, shape.longest));
      for (std::uint32_t& id : record.tokens) id = below(random, shape.vocab);
      if (random.chance(500)) record.mask = random_mask(random, record.tokens.size());
      if (!shape.pictures || !random.chance(300)) continue;
      for (std::uint32_t token = 0; token < record.tokens.size(); token += 7 + below(random, 30)) {
        const std::uint32_t height = 1 + below(random, 5);
        Bytes& pixels = record.pixels.emplace_back(3 * height);
        for (std::byte& pixel : pixels) pixel = static_cast<std::byte>(random.below(256));
        record.pictures.push_back(
            {.token = token,
             .info = {.name = "pixels", .type = store::TensorType::kU8, .shape = {height, 3}},
             .bytes = {}});
      }
      for (std::size_t i = 0; i < record.pixels.size(); ++i) {
        record.pictures[i].bytes = record.pixels[i];
      }
    }
  }
}

const Corpus::Record& Corpus::record_of(const SampleId& id) const {
  return records_.at(id.source.value).at(id.index.value);
}

Result<std::uint32_t> Corpus::tokens(model::SourceId source, model::RecordIndex record) {
  const auto tokens = records_.at(source.value).at(record.value).tokens.size();
  return used_tokens(shape_.rule, static_cast<std::uint32_t>(tokens));
}

Result<SampleMeta> Corpus::describe(const planning::Part& part) {
  const Record& record = record_of(part.id);
  BL_ASSIGN_OR_RETURN(const PartContent cut, cut_part(shape_.rule, record.content(), part.id.part));
  SampleMeta meta;
  meta.id = part.id;
  meta.tokens = part.tokens;
  meta.valid_labels = cut.shape.valid_labels;
  meta.first_position = part.first_position;
  meta.image_patches.assign(cut.tensors.size(), 16);
  meta.place = {.shard = {}, .offset_bytes = 100 * part.id.index.value, .size_bytes = 100};
  return meta;
}

planning::GraphSpec Corpus::graph(planning::Balance balance) const {
  planning::MixSpec mix;
  mix.seed = shape_.seed;
  mix.unit = planning::StepUnit::kTokens;
  mix.units_per_step = shape_.step_tokens;
  mix.max_sample_tokens = shape_.rule.max_sample_tokens;
  for (const planning::SourceRecords& source : sources_) {
    mix.sources.push_back({.name = source.name,
                           .weight = planning::Schedule(planning::Weight(1)),
                           .exhausted = planning::Exhausted::kDrop});
  }
  planning::Selection text(planning::Modality::kText);
  text.distribute(planning::spread_of(balance))
      .cost("h200-llama7b")
      .balance(balance,
               {.capacity_tokens = shape_.capacity_tokens, .min_share_tokens = 8, .offload = true})
      .broadcast_at(model::Axis::kTp);
  return {.mix = std::move(mix), .selections = {text.spec()}};
}

std::vector<PlannedStep> Corpus::plan(planning::Balance balance, std::string_view axes,
                                      std::size_t count) {
  const planning::GraphSpec graph = this->graph(balance);
  const model::Topology topology = model::Topology::parse(axes).value();
  planning::PlannerState state = first_state(graph, *this).value();
  std::vector<PlannedStep> steps;
  while (steps.size() < count) {
    auto step = plan_step(graph, state, *this, topology);
    BL_CHECK(step.is_ok(), step.status().to_string());
    if (!step->has_value()) break;
    state = (**step).next;
    steps.push_back(*std::move(*step));
  }
  return steps;
}

std::vector<BlockPtr> Corpus::load(model::Step step, std::span<const SampleMeta> members) const {
  std::map<model::SourceId, SampleBlockBuilder> builders;
  for (const SampleMeta& member : members) {
    const SampleBlockOptions options{
        .step = step, .source = member.id.source, .vocab = shape_.vocab, .payload_bytes = 0};
    SampleBlockBuilder& builder = builders.try_emplace(member.id.source, options).first->second;
    const auto part = cut_part(shape_.rule, record_of(member.id).content(), member.id.part);
    BL_CHECK(part.is_ok(), part.status().to_string());
    const Status added = builder.add(member, *part);
    BL_CHECK(added.is_ok(), added.to_string());
  }
  std::vector<BlockPtr> blocks;
  for (auto& [source, builder] : builders) blocks.push_back(builder.finish());
  return blocks;
}

std::vector<ConstructionJob> Corpus::jobs(std::span<const PlannedStep> steps) const {
  std::vector<ConstructionJob> jobs;
  for (const PlannedStep& step : steps) {
    ConstructionJob& job = jobs.emplace_back();
    job.seq = store::Seq(jobs.size() - 1);
    job.steps.push_back(input(step));
    job.state_after = to_bytes(fmt::format("{}", jobs.size()));
  }
  return jobs;
}

std::shared_ptr<const ObjectOptions> Corpus::options() const {
  ObjectOptions options{.vocab = shape_.vocab, .origin = {}};
  for (const planning::SourceRecords& source : sources_) {
    options.origin.sources.push_back({.name = source.name, .digest = shape_.seed});
  }
  options.origin.planner = "test";
  return std::make_shared<const ObjectOptions>(std::move(options));
}

std::string Corpus::problem_of(const SampleMeta& member, const RunPiece& piece,
                               store::TokenWidth width) const {
  const Record& record = record_of(member.id);
  const std::size_t used =
      used_tokens(shape_.rule, static_cast<std::uint32_t>(record.tokens.size()));
  const TokenSpan tokens(piece.tokens, width);
  if (tokens.size() != piece.hi - piece.lo || piece.sample_tokens != member.tokens ||
      piece.first_position != member.first_position) {
    return "with another place or length";
  }
  const auto learned = [&](std::size_t token) {
    return !record.mask || std::ranges::any_of(*record.mask, [&](const LearnedInterval& interval) {
      return interval.begin <= token && token < interval.end;
    });
  };
  for (std::uint32_t i = 0; i < tokens.size(); ++i) {
    const std::size_t at = piece.first_position + piece.lo + i;
    if (tokens[i] != record.tokens[at]) return fmt::format("with another token {}", at);
    const std::int64_t label =
        at + 1 < used && learned(at + 1) ? std::int64_t{record.tokens[at + 1]} : kNoLabel;
    if (label_of(piece, i, width) != label) return fmt::format("with another label {}", at);
  }
  auto picture = piece.tensors.begin();
  for (const RecordTensor& expected : record.pictures) {
    const std::uint64_t begin = piece.first_position + piece.lo;
    if (expected.token < begin || expected.token >= begin + tokens.size()) continue;
    if (picture == piece.tensors.end() || begin + picture->token != expected.token ||
        picture->info != expected.info || !std::ranges::equal(picture->bytes, expected.bytes)) {
      return fmt::format("with another picture at token {}", expected.token);
    }
    ++picture;
  }
  return picture == piece.tensors.end() ? "" : "with a picture too many";
}

std::string Corpus::problem(const PlannedStep& step,
                            std::span<const std::vector<store::RunMicroBatch>> ranks,
                            store::TokenWidth width) const {
  std::map<SampleId, std::pair<const SampleMeta*, std::vector<int>>> members;
  for (const SampleMeta& member : step.members) {
    members[member.id] = {&member, std::vector<int>(member.tokens, 0)};
  }
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    for (const store::RunMicroBatch& micro_batch : ranks[rank]) {
      for (const RunPiece& piece : micro_batch.pieces) {
        const std::string name = fmt::format("rank {}, sample {}", rank, to_string(piece.sample));
        const auto found = members.find(piece.sample);
        if (found == members.end()) return name + " is no member";
        auto& [member, seen] = found->second;
        if (piece.lo >= piece.hi || piece.hi > member->tokens) return name + " beyond its end";
        for (std::uint32_t at = piece.lo; at < piece.hi; ++at) ++seen[at];
        if (const std::string wrong = problem_of(*member, piece, width); !wrong.empty()) {
          return fmt::format("{} {}", name, wrong);
        }
      }
    }
  }
  for (const auto& [id, row] : members) {
    if (std::ranges::any_of(row.second, [](int count) { return count != 1; })) {
      return fmt::format("sample {}: not each token once", to_string(id));
    }
  }
  return "";
}

}  // namespace batchloom::construction
