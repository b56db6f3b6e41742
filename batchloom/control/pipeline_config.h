// SPDX-License-Identifier: Apache-2.0
// What a pipeline is, as plain values: one struct for each table of its file
// (docs/formats/pipeline_toml.md). Defaults stand here and nowhere else; parse_pipeline() starts
// from them, and describe() prints what came of it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "batchloom/model/topology.h"
#include "batchloom/planning/builtin_costs.h"
#include "batchloom/planning/graph_spec.h"
#include "batchloom/sources/picture.h"
#include "batchloom/sources/record_fields.h"
#include "batchloom/sources/sentencepiece_model.h"
#include "batchloom/sources/tokenizer.h"

namespace batchloom::control {

/// [run]
struct RunConfig {
  /// How many steps the stream shall have. Absent: until the sources stop.
  std::optional<std::uint64_t> steps = {};
  /// The part of every source that is read. What a source does not divide is "train".
  std::string split = "train";

  friend bool operator==(const RunConfig&, const RunConfig&) = default;
};

/// How a batch's bytes are stored.
enum class StoreCodec : std::uint8_t { kRaw };

/// [store]
struct StoreConfig {
  std::string url = {};  ///< Where the stream lies; has no default.
  /// How far steps are made ahead of the slowest live cursor. More hide slower sources and cost
  /// room; absent ("unlimited"): the producer waits for nobody.
  std::optional<std::uint64_t> lead_steps = 32;
  StoreCodec codec = StoreCodec::kRaw;  ///< raw costs room, and no time.
  /// The producer waits where the stream has this many bytes. Absent: it grows until pins let go.
  std::optional<std::uint64_t> retain_max_bytes = {};
  // Of s3:// alone; empty: as the usual AWS chain says.
  std::string endpoint = {};
  std::string region = {};
  std::string profile = {};

  friend bool operator==(const StoreConfig&, const StoreConfig&) = default;
};

/// [topology]
struct TopologyConfig {
  model::Topology axes = model::Topology::create({{model::Axis::kDp, 1}}).value();
  /// Tokens that a rank holds in one micro-batch. More need memory, and fewer micro-batches.
  std::uint32_t capacity_tokens = 8192;

  friend bool operator==(const TopologyConfig&, const TopologyConfig&) = default;
};

/// What becomes of a record with more than max_sample_tokens.
enum class OverLength : std::uint8_t {
  kSplit,     ///< It becomes several parts, and no token is lost.
  kTruncate,  ///< Its first part stays.
  kDrop,      ///< Nothing stays.
};

/// [step]
struct StepConfig {
  planning::StepUnit unit = planning::StepUnit::kTokens;
  std::uint64_t units = 0;              ///< Tokens at most, or samples exactly; has no default.
  std::uint32_t max_sample_tokens = 0;  ///< Where records are cut; has no default.
  OverLength over_length = OverLength::kSplit;  ///< split loses nothing, and parts lack context.

  friend bool operator==(const StepConfig&, const StepConfig&) = default;
};

/// Who makes ids of texts.
enum class TokenizerKind : std::uint8_t {
  kBytes,          ///< An id for each byte of UTF-8.
  kIds,            ///< Nobody: all sources hold ids.
  kSentencePiece,  ///< A model of sentencepiece.
  kPython,         ///< A function of Python.
};

/// A model that a file holds, and the file.
struct TextModel {
  std::string file = {};  ///< As it was written.
  /// Null where there is none.
  std::shared_ptr<const sources::SentencePieceModel> content = {};

  /// Of equal files and contents.
  friend bool operator==(const TextModel& a, const TextModel& b);
};

/// A function of Python, and what is known of its ids: what its files hold.
struct TextFunction {
  std::string name = {};                ///< "module:function".
  std::vector<std::string> files = {};  ///< That it reads, as they were written.
  std::string folder = {};              ///< Where its module lies.
  // The module's source, and all of `files`: bytes, and a digest of them.
  std::uint64_t source_bytes = 0;
  std::uint64_t source_digest = 0;
  std::uint64_t files_bytes = 0;
  std::uint64_t files_digest = 0;

  friend bool operator==(const TextFunction&, const TextFunction&) = default;
};

/// How many ids `bytes` makes.
inline constexpr std::uint32_t kByteIds = 256;

/// [tokens]
struct TokensConfig {
  TokenizerKind tokenizer = TokenizerKind::kBytes;  ///< Has no default in a file.
  /// Of sentencepiece, which cannot do without.
  TextModel model = {};
  /// Of python, which cannot do without.
  TextFunction function = {};
  /// Ids are below this. The default is that of `bytes`, or the model's number of pieces; ids and
  /// python need to be told.
  std::uint32_t vocab = kByteIds;
  // Ids before and after each record, never around parts.
  std::vector<sources::TokenId> begin = {};
  std::vector<sources::TokenId> end = {};

  friend bool operator==(const TokensConfig&, const TokensConfig&) = default;
};

/// [image]
struct ImageConfig {
  /// More patches cost more tokens, and show more.
  sources::PictureRules rules = {};
  /// The id that stands for a cell of a picture. Has no default: only the model knows.
  std::optional<sources::TokenId> token = {};

  friend bool operator==(const ImageConfig&, const ImageConfig&) = default;
};

/// [balance]
struct BalanceConfig {
  /// two_level fits every trainer; hdp evens out long samples, and needs one that knows rings.
  planning::Balance strategy = planning::Balance::kTwoLevel;
  /// Built in, or a file that ends in .toml. What steps contain does not depend on it.
  std::string cost_model = "h200-llama7b";
  /// The model of that name.
  planning::CostModel costs = planning::builtin_cost_model("h200-llama7b").value();
  /// hdp: the least share of a sample on several ranks. Less spreads more, and hides less.
  std::uint32_t min_share_tokens = 4096;
  /// hdp: activations may go to the host, for samples that fit nowhere else.
  bool offload = true;

  friend bool operator==(const BalanceConfig&, const BalanceConfig&) = default;
};

/// [limits]
struct LimitsConfig {
  /// Of all loaders together. Less makes loading stop and go where sources are uneven.
  std::uint64_t memory_bytes = std::uint64_t{2} << 30;
  std::optional<std::uint32_t> workers = {};  ///< Absent ("auto"): as many as the profile asks for.
  /// Of each source; one more stops the run. 0 finds the first bad record, and stops there.
  std::uint64_t bad_records = 100;

  friend bool operator==(const LimitsConfig&, const LimitsConfig&) = default;
};

enum class SourceFormat : std::uint8_t {
  kJsonl,     ///< A JSON object on each line.
  kMegatron,  ///< Pairs of .bin and .idx, which hold ids.
  kParquet,   ///< Rows of tables, whose columns are the fields.
  kTar,       ///< WebDataset tars, whose records are neighbouring members with one key.
  kText,      ///< Files that are one record each.
};

/// Whether records have named fields: those of megatron are ids and nothing else, those of text are
/// all that a file holds.
constexpr bool has_fields(SourceFormat format) {
  return format != SourceFormat::kMegatron && format != SourceFormat::kText;
}

/// Whether a field may be a picture.
constexpr bool holds_pictures(SourceFormat format) {
  return format == SourceFormat::kParquet || format == SourceFormat::kTar;
}

/// What decides which split a record belongs to.
enum class SplitRule : std::uint8_t {
  kContent,  ///< What it is. Equal records are of one split, wherever they lie.
  kField,    ///< The text in a field. So are those of one author, say, or of one conversation.
  kNumber,   ///< Source and number. It costs nothing, and holds as long as no file is changed.
};

/// A rule, and the field that it looks at.
struct SplitBy {
  SplitRule rule = SplitRule::kContent;
  std::string field = {};  ///< Of kField alone.

  friend bool operator==(const SplitBy&, const SplitBy&) = default;
};

/// [[source]]
struct SourceConfig {
  std::string name = {};
  std::vector<std::string> files = {};  ///< Patterns, as they were written.
  /// The files that they match, in the order in which their records are counted.
  std::vector<std::string> paths = {};
  SourceFormat format = SourceFormat::kJsonl;  ///< As the files' names say, if it is not given.
  /// { text = "text" } of jsonl, "txt" of tar. Absent: megatron and text have
  /// none.
  std::optional<sources::RecordFields> fields = {};
  /// fields.image. Empty: records hold no pictures.
  std::string picture = {};
  /// answer and mask where fields have them: nobody names a mask that shall not count.
  sources::LossOn loss_on = sources::LossOn::kAll;
  /// Shares by the name of the split.
  std::map<std::string, std::uint64_t> split = {{"train", 1}};
  SplitBy split_by = {};
  planning::Schedule weight = planning::Schedule(planning::Weight(1'000'000'000));
  planning::Order order = planning::Order::kRandom;  ///< file: as they lie, for curricula.
  planning::Exhausted exhausted = planning::Exhausted::kStop;  ///< Nothing is seen twice unasked.
  std::uint32_t epochs = 0;                                    ///< Passes, with repeat. 0: no end.

  friend bool operator==(const SourceConfig&, const SourceConfig&) = default;
};

struct PipelineConfig {
  std::uint64_t seed = 0;  ///< Of all orders. Another seed is another stream.
  RunConfig run = {};
  StoreConfig store = {};
  TopologyConfig topology = {};
  StepConfig step = {};
  TokensConfig tokens = {};
  ImageConfig image = {};
  BalanceConfig balance = {};
  LimitsConfig limits = {};
  std::vector<SourceConfig> sources = {};

  friend bool operator==(const PipelineConfig&, const PipelineConfig&) = default;
};

/// Whether the run's split has anything of the source.
bool takes_part(const SourceConfig& source, const RunConfig& run);

/// Whether a source has any.
bool has_pictures(const PipelineConfig& config);

/// Whether more than one split has a share of the source, so that its rule decides anything.
bool is_divided(const SourceConfig& source);

/// The ranks that one part may span: the extent of cp, and with hdp all HDP ranks.
std::uint32_t ranks_of_a_part(const PipelineConfig& config);

}  // namespace batchloom::control
