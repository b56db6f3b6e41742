// SPDX-License-Identifier: Apache-2.0
#include "cli/lengths_input.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "batchloom/control/pipeline_graph.h"
#include "batchloom/control/pipeline_tokenizer.h"
#include "batchloom/simulator/input_file.h"
#include "batchloom/simulator/length_distributions.h"
#include "batchloom/simulator/length_files.h"
#include "batchloom/sources/glob.h"
#include "cli/indexing.h"
#include "cli/pipeline_inputs.h"
#include "cli/stop_signals.h"
#include "cli/tokens_text.h"

namespace batchloom::cli {
namespace {

constexpr std::uint32_t kUsualContext = std::uint32_t{2} << 20;
constexpr std::uint64_t kUsualTokens = std::uint64_t{32} << 20;

bool is_distribution(const std::string& name) {
  const auto names = simulator::length_distribution_names();
  return std::ranges::find(names, name) != names.end();
}

bool is_pipeline(const std::string& name) {
  return name.ends_with(".toml");
}

/// Options that belong to other kinds of lengths.
Status check_options(const LengthsArgs& args) {
  const bool takes_columns = !is_distribution(args.lengths) && !is_pipeline(args.lengths);
  if (!args.column.empty() && !takes_columns) {
    return Status::invalid(fmt::format("--column: {} is a {}, which has no columns", args.lengths,
                                       is_pipeline(args.lengths) ? "pipeline" : "distribution"));
  }
  if ((args.tokenizer || !args.fields.empty()) && !takes_columns) {
    return Status::invalid(
        fmt::format("--tokenizer, --field: {} is a {}; they are for files of records", args.lengths,
                    is_pipeline(args.lengths) ? "pipeline, which has its own" : "distribution"));
  }
  if (!args.index_folder.empty() && !is_pipeline(args.lengths)) {
    return Status::invalid(fmt::format(
        "--index-folder: {} is no pipeline, and nothing else is indexed", args.lengths));
  }
  return Status::ok();
}

Result<std::unique_ptr<sources::Tokenizer>> make_tokenizer(const LengthsArgs& args) {
  control::TokensConfig tokens;
  tokens.tokenizer = *args.tokenizer;
  if (tokens.tokenizer == control::TokenizerKind::kIds) tokens.vocab = sources::kMaxVocab;
  return control::make_tokenizer(tokens);
}

/// One field of text or ids, or those of prompt and answer.
sources::RecordFields fields_of(const LengthsArgs& args,
                                std::optional<simulator::RecordFormat> format) {
  const std::vector<std::string>& names = args.fields;
  if (names.size() == 2) return sources::AnswerFields{.prompt = names[0], .answer = names[1]};
  if (args.tokenizer == control::TokenizerKind::kIds) {
    return sources::TokenFields{.tokens = names.empty() ? "tokens" : names[0]};
  }
  if (!names.empty()) return sources::TextField{.text = names[0]};
  return sources::TextField{.text = format == simulator::RecordFormat::kTar ? "txt" : "text"};
}

/// A name with a wildcard is a pattern, unless a file has just that name.
Result<std::vector<std::string>> files_named(const std::string& name) {
  const bool is_pattern = name.find_first_of("*?[") != std::string::npos;
  if (!is_pattern || simulator::InputFile::open(name).is_ok()) return std::vector{name};
  return sources::files_matching(name);
}

Result<std::vector<std::uint32_t>> read_file(const LengthsArgs& args, const std::string& path,
                                             const sources::Tokenizer* tokenizer) {
  const auto format = simulator::record_format(path);
  if (format && !args.tokenizer) {
    return Status::invalid(
        fmt::format("{}: whose tokens? {} need --tokenizer=bytes, or ids where they hold "
                    "ids; the lengths of a pipeline's file (.toml) need none",
                    path, to_string(*format)));
  }
  if (!format && args.tokenizer) {
    return Status::invalid(fmt::format(
        "{}: --tokenizer and --field are for files of records (.jsonl, .tar, .parquet)", path));
  }
  return simulator::read_lengths({.path = path,
                                  .column = args.column,
                                  .tokenizer = tokenizer,
                                  .fields = fields_of(args, format)});
}

Result<std::vector<std::uint32_t>> read_files(const LengthsArgs& args) {
  BL_ASSIGN_OR_RETURN(const std::vector<std::string> paths, files_named(args.lengths));
  std::unique_ptr<sources::Tokenizer> tokenizer;
  if (args.tokenizer) {
    BL_ASSIGN_OR_RETURN(tokenizer, make_tokenizer(args));
  }
  std::vector<std::uint32_t> lengths;
  for (const std::string& path : paths) {
    BL_ASSIGN_OR_RETURN(const auto more, read_file(args, path, tokenizer.get()));
    if (more.size() > simulator::kFileLengthsMax - lengths.size()) {
      return Status::invalid(fmt::format(
          "{}: with it there are more than the {} lengths that can be read; name fewer files", path,
          simulator::kFileLengthsMax));
    }
    lengths.insert(lengths.end(), more.begin(), more.end());
  }
  return lengths;
}

}  // namespace

Result<LengthsInput> LengthsInput::open(const LengthsArgs& args, Runtime& runtime) {
  BL_RETURN_IF_ERROR(check_options(args));
  if (is_distribution(args.lengths))
    return LengthsInput(Kind::kDistribution, args.lengths, runtime);
  if (is_pipeline(args.lengths)) {
    LengthsInput input(Kind::kPipeline, args.lengths, runtime);
    BL_ASSIGN_OR_RETURN(const control::PipelineFile file,
                        control::read_pipeline(args.lengths, disk_inputs()));
    input.pipeline_ = file.config;
    input.index_folder_ = args.index_folder;
    return input;
  }
  LengthsInput input(Kind::kFile, args.lengths, runtime);
  auto lengths = read_files(args);
  if (lengths.is(ErrorKind::kNotFound)) {
    return Status::not_found(fmt::format("{}, and no distribution of that name; there are {}",
                                         lengths.status().message(),
                                         fmt::join(simulator::length_distribution_names(), ", ")));
  }
  if (!lengths.is_ok()) return lengths.status();
  input.lengths_ = *std::move(lengths);
  return input;
}

StepsWanted LengthsInput::resolved(StepsWanted wanted) const {
  if (kind_ != Kind::kPipeline) {
    wanted.context_tokens = wanted.context_tokens.value_or(kUsualContext);
    wanted.step_tokens = wanted.step_tokens.value_or(kUsualTokens);
    wanted.seed = wanted.seed.value_or(1);
    return wanted;
  }
  wanted.context_tokens = wanted.context_tokens.value_or(pipeline_.step.max_sample_tokens);
  wanted.seed = wanted.seed.value_or(pipeline_.seed);
  if (!wanted.step_tokens && pipeline_.step.unit == planning::StepUnit::kTokens) {
    wanted.step_tokens = pipeline_.step.units;
  }
  return wanted;
}

std::string LengthsInput::step_text(const StepsWanted& wanted) const {
  if (const auto tokens = resolved(wanted).step_tokens) {
    return fmt::format("{} tokens", tokens_text(*tokens));
  }
  return fmt::format("{} samples", pipeline_.step.units);
}

std::uint64_t LengthsInput::too_long(std::uint32_t context_tokens) const {
  return static_cast<std::uint64_t>(std::ranges::count_if(
      lengths_, [&](std::uint32_t length) { return length > context_tokens; }));
}

Result<simulator::LengthsByStep> LengthsInput::draw(const StepsWanted& wanted) const {
  if (kind_ == Kind::kPipeline) return draw_pipeline(wanted);
  const StepsWanted full = resolved(wanted);
  const simulator::StepLengths steps = {.context_tokens = *full.context_tokens,
                                        .step_tokens = *full.step_tokens,
                                        .steps = full.steps,
                                        .seed = *full.seed};
  return is_file() ? simulator::lengths_of_steps(lengths_, steps)
                   : simulator::lengths_of_steps(name_, steps);
}

Result<simulator::LengthsByStep> LengthsInput::draw_pipeline(const StepsWanted& wanted) const {
  const StepsWanted full = resolved(wanted);
  control::PipelineConfig config = pipeline_;
  config.seed = *full.seed;
  config.step.max_sample_tokens = *full.context_tokens;
  if (full.step_tokens) {
    config.step.unit = planning::StepUnit::kTokens;
    config.step.units = *full.step_tokens;
  }
  const StopSignals signals(*runtime_);
  BL_ASSIGN_OR_RETURN(const SourcesOnDisk opened,
                      open_sources(config, *runtime_,
                                   {.workers = config.limits.workers.value_or(default_workers()),
                                    .folder = index_folder_,
                                    .python = {},
                                    .on_shard = log_indexed},
                                   {.deadline = kNever, .stop = signals.token()}));
  const auto steps =
      simulator::lengths_of_steps(control::graph_of(config), opened.sources->set(), full.steps);
  return steps.is_ok() ? steps : steps.status().with_context(name_);
}

}  // namespace batchloom::cli
