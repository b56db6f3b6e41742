// SPDX-License-Identifier: Apache-2.0
// The options of what asks about planning.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

#include "batchloom/base/quantity.h"
#include "batchloom/planning/graph_spec.h"
#include "batchloom/planning/strategies.h"
#include "batchloom/simulator/length_distributions.h"
#include "cli/define.h"

namespace batchloom::cli {
namespace {

constexpr std::uint64_t kMostSteps = 10'000;
constexpr std::uint64_t kMostContexts = 16;
/// So that the last step's seed is a number too.
constexpr std::uint64_t kMostLengthSeed = std::uint64_t{1} << 62;

std::vector<std::string> split_list(std::string_view text) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    parts.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

Result<std::uint64_t> tokens_of(std::string_view option, const std::string& text,
                                std::uint64_t most) {
  const auto tokens = parse_count(text);
  if (tokens && *tokens > 0 && *tokens <= most) return *tokens;
  return Status::invalid(fmt::format(
      "{}: '{}' is no number of tokens from 1 to {}, like 8192, 256K or 2M", option, text, most));
}

Status check_strategy(const std::string& name) {
  if (name == planning::to_string(planning::Balance::kTwoModule)) {
    return Status::invalid(fmt::format(
        "{} evens out pictures and tokens together, and lengths have no pictures; of tokens alone "
        "two_level does it",
        name));
  }
  return planning::find_strategy(name).status();
}

Status parse_contexts(const std::string& text, std::vector<std::uint32_t>& contexts) {
  contexts.clear();
  for (const std::string& part : split_list(text)) {
    BL_ASSIGN_OR_RETURN(const std::uint64_t tokens, tokens_of("--context", part, UINT32_MAX));
    const auto context = static_cast<std::uint32_t>(tokens);
    if (!contexts.empty() && context <= contexts.back()) {
      return Status::invalid(fmt::format("--context: {} does not ascend", text));
    }
    contexts.push_back(context);
  }
  if (contexts.size() <= kMostContexts) return Status::ok();
  return Status::invalid(fmt::format("--context: {} of them; at most {} can be compared",
                                     contexts.size(), kMostContexts));
}

Status parse_strategies(const std::string& text, Whatif& whatif) {
  whatif.strategies.clear();
  whatif.all = text == "all";
  if (whatif.all) return Status::ok();
  for (const std::string& name : split_list(text)) {
    BL_RETURN_IF_ERROR(check_strategy(name));
    if (std::ranges::find(whatif.strategies, name) != whatif.strategies.end()) {
      return Status::invalid(fmt::format("--strategies: {} stands there twice", name));
    }
    whatif.strategies.push_back(name);
  }
  return Status::ok();
}

void keep_text(Options& options, const std::string& option, const std::string& type,
               const std::string& help, std::string& value) {
  options.text(option, type, help, [&value](const std::string& text) {
    value = text;
    return Status::ok();
  });
}

Status parse_tokenizer(const std::string& name, LengthsArgs& lengths) {
  if (name == "bytes") {
    lengths.tokenizer = control::TokenizerKind::kBytes;
  } else if (name == "ids") {
    lengths.tokenizer = control::TokenizerKind::kIds;
  } else {
    return Status::invalid(fmt::format(
        "--tokenizer: '{}' is none; there are bytes, and ids for records that hold them", name));
  }
  return Status::ok();
}

Status parse_fields(const std::string& text, LengthsArgs& lengths) {
  lengths.fields = split_list(text);
  const bool empty = std::ranges::find(lengths.fields, "") != lengths.fields.end();
  if (!empty && lengths.fields.size() <= 2) return Status::ok();
  return Status::invalid(
      fmt::format("--field: '{}' is neither a field's name nor two with a comma between", text));
}

void define_lengths(Options& options, LengthsArgs& lengths, const std::string& tokens_help) {
  const std::string names =
      fmt::format("{}", fmt::join(simulator::length_distribution_names(), ", "));
  keep_text(
      options, "--lengths", "NAME|FILE",
      "lengths of samples: " + names +
          "; files, also by a pattern: numbers by line, x.csv, x.jsonl, x.tar, x.parquet, or "
          "x.idx of a Megatron data set; or x.toml, a pipeline: as its sources' weights draw them",
      lengths.lengths);
  keep_text(options, "--column", "NAME|N", "which column of a CSV file has the lengths",
            lengths.column);
  options.needs("--lengths");
  options.text("--tokenizer", "bytes|ids",
               "what x.jsonl, x.tar or x.parquet holds: texts, an id a byte, or ids",
               [&lengths](const std::string& name) { return parse_tokenizer(name, lengths); });
  options.needs("--lengths");
  options.text("--field", "NAME[,NAME]",
               "of x.jsonl and x.parquet: the text (default: text) or the ids (default: tokens), "
               "or two texts, "
               "prompt and answer; of x.tar: members (default: txt)",
               [&lengths](const std::string& text) { return parse_fields(text, lengths); });
  options.needs("--tokenizer");
  keep_text(options, "--index-folder", "PATH",
            "where a pipeline's indexes lie (default: beside what they index)",
            lengths.index_folder);
  options.needs("--lengths");
  keep_text(options, "--cluster", "FILE", "ranks, links and costs in TOML (default: 512 ranks)",
            lengths.cluster);
  options.text("--tokens", "N", tokens_help, [&lengths](const std::string& text) {
    BL_ASSIGN_OR_RETURN(lengths.tokens, tokens_of("--tokens", text, simulator::kTotalTokensMax));
    return Status::ok();
  });
  options.number("--seed", "of the first step (default: 1, or a pipeline's)",
                 [&lengths](std::uint64_t n) { lengths.seed = n; }, {.most = kMostLengthSeed});
}

Status check_fields(const LengthsArgs& lengths) {
  if (lengths.fields.size() < 2 || lengths.tokenizer != control::TokenizerKind::kIds) {
    return Status::ok();
  }
  return Status::invalid("--field: records that hold ids hold them in one field");
}

}  // namespace

void define_whatif(Options& options, Whatif& whatif) {
  define_lengths(options, whatif.lengths, "of a step, like 4M (default: 32M, or a pipeline's)");
  options.text(
      "--context", "N[,N...]",
      "tokens that a sample may have, like 256K,2M (default: 2M, or a pipeline's)",
      [&whatif](const std::string& text) { return parse_contexts(text, whatif.contexts); });
  options.text("--strategies", "all|NAME,...",
               fmt::format("which to compare: {} (default: those that --check needs, and none and "
                           "two_level where they can plan)",
                           fmt::join(planning::strategy_names(), ", ")),
               [&whatif](const std::string& text) { return parse_strategies(text, whatif); });
  options.number("--steps", fmt::format("how many are replayed (default: {})", whatif.steps),
                 [&whatif](std::uint64_t n) { whatif.steps = n; }, {1, kMostSteps});
  options.flag("--assumptions", "replay again with each assumption halved and doubled",
               whatif.assumptions);
  options.flag("--check",
               "exit code 1 unless static_cp, naive_hdp, dp_balance (with stages pp_balance) and "
               "hdp take less and less time",
               whatif.check);
  keep_text(options, "--json", "FILE", "write everything to FILE, or print it (-)", whatif.json);
  keep_text(options, "--svg", "DIR", "draw plots into DIR, which is made where missing",
            whatif.svg);
  options.check([&whatif] {
    BL_RETURN_IF_ERROR(check_fields(whatif.lengths));
    if (!whatif.lengths.lengths.empty()) return Status::ok();
    return Status::invalid("--lengths=NAME|FILE is missing: whose lengths?");
  });
}

void define_plan_explain(Options& options, PlanExplain& explain) {
  define_lengths(options, explain.lengths,
                 "of the step, drawn from the lengths (default: all of files once, 32M of names, a "
                 "pipeline's first step)");
  options.text("--context", "N",
               "tokens that a sample may have, like 2M (default: 2M for names, a pipeline's)",
               [&explain](const std::string& text) {
                 BL_ASSIGN_OR_RETURN(const std::uint64_t tokens,
                                     tokens_of("--context", text, UINT32_MAX));
                 explain.context_tokens = static_cast<std::uint32_t>(tokens);
                 return Status::ok();
               });
  options.text("--strategy", "NAME", "who plans (default: hdp)",
               [&explain](const std::string& name) {
                 explain.strategy = name;
                 return check_strategy(name);
               });
  options.text("--store", "URL", "explain a plan of this stream",
               [&explain](const std::string& url) {
                 BL_ASSIGN_OR_RETURN(explain.store.folder, store::parse_store_url(url));
                 explain.store.url = url;
                 return Status::ok();
               });
  options.excludes("--lengths").excludes("--strategy").excludes("--tokens").excludes("--context");
  options.number("--step", "which step of the stream",
                 [&explain](std::uint64_t n) { explain.step = store::Step(n); });
  options.needs("--store");
  options.flag("--timeline", "also when each rank runs what", explain.timeline);
  options.flag("--json", "print JSON, with the same fields", explain.json);
  options.check([&explain] {
    if (!explain.store.url.empty()) {
      return explain.step ? Status::ok() : Status::invalid("--store needs --step=N: which plan?");
    }
    BL_RETURN_IF_ERROR(check_fields(explain.lengths));
    if (!explain.lengths.lengths.empty()) return Status::ok();
    return Status::invalid("--lengths=NAME|FILE or --store=URL is missing: which step?");
  });
}

void define_calibrate(Options& options, Calibrate& calibrate) {
  options.argument("FILE", "timings, as lines of kind,tokens,forward_ms,backward_ms",
                   [&calibrate](const std::string& file) {
                     calibrate.timings = file;
                     return Status::ok();
                   });
  keep_text(options, "--out", "FILE", "write the cost model to FILE, whose name ends in .toml",
            calibrate.out);
  define_name(options, "--name", "NAME", "cost model",
              fmt::format("what it is called (default: {})", calibrate.name), calibrate.name);
  keep_text(options, "--base", "NAME|FILE",
            fmt::format("what gives all that was not timed: layers, launch, bytes (default: {})",
                        calibrate.base),
            calibrate.base);
  options.flag("--json", "print JSON, with the same fields", calibrate.json);
  options.check([&calibrate] {
    if (calibrate.out.empty() || calibrate.out.ends_with(".toml")) return Status::ok();
    return Status::invalid(fmt::format(
        "--out: '{}' does not end in .toml, by which a cluster knows a cost model's file",
        calibrate.out));
  });
}

}  // namespace batchloom::cli
