// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/pipeline_keys.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "batchloom/base/spelling.h"

namespace batchloom::control {
namespace {

using enum TomlType;
using enum KeyEffect;

constexpr std::array kPipelineKeys = {
    PipelineKey{"seed", {kWhole}, kMembership, "a whole number, from which all orders follow"},

    PipelineKey{"run", {kTable}, kSection, "what is made of it"},
    PipelineKey{"run.steps", {kWhole}, kFree, "how many steps the stream shall have"},
    PipelineKey{"run.split", {kText}, kMembership, "the split to read, like \"train\""},

    PipelineKey{"store", {kTable}, kSection, "where the stream lies"},
    PipelineKey{"store.url", {kText}, kFree, "where the stream lies, like \"./stream\""},
    PipelineKey{"store.lead_steps", {kWhole, kText}, kFree, "a number of steps, or \"unlimited\""},
    PipelineKey{"store.codec", {kText}, kFree, "how batches are stored"},
    PipelineKey{"store.retain", {kTable}, kFree, "how much is kept"},
    PipelineKey{"store.retain.max_bytes", {kText}, kFree, "a size, like \"200 GiB\""},
    PipelineKey{"store.endpoint", {kText}, kFree, "a URL of an S3 server"},
    PipelineKey{"store.region", {kText}, kFree, "a region of S3"},
    PipelineKey{"store.profile", {kText}, kFree, "a profile of the AWS configuration"},

    PipelineKey{"topology", {kTable}, kSection, "the ranks that train"},
    PipelineKey{"topology.axes", {kText}, kFree, "axes, outermost first: \"pp=1 dp=8 cp=1 tp=1\""},
    PipelineKey{"topology.capacity", {kWhole}, kFree, "tokens of a micro-batch on one rank"},

    PipelineKey{"step", {kTable}, kSection, "what a step holds"},
    PipelineKey{"step.tokens", {kWhole}, kMembership, "tokens of a step, at most"},
    PipelineKey{"step.samples", {kWhole}, kMembership, "samples of a step"},
    PipelineKey{"step.max_sample_tokens", {kWhole}, kMembership, "tokens of a part, at most"},
    PipelineKey{"step.over_length", {kText}, kMembership, "what becomes of longer records"},

    PipelineKey{"tokens", {kTable}, kSection, "the one text tokenizer of a stream, and its ids"},
    PipelineKey{"tokens.tokenizer",
                {kText, kTable},
                kMembership,
                "one for the whole stream: \"bytes\", \"ids\" or { kind = \"sentencepiece\" }"},
    PipelineKey{"tokens.tokenizer.kind", {kText}, kMembership, "the name of a tokenizer"},
    PipelineKey{"tokens.tokenizer.model", {kText}, kMembership, "a model's file, of sentencepiece"},
    PipelineKey{"tokens.tokenizer.function", {kText}, kMembership, "\"module:function\" of Python"},
    PipelineKey{
        "tokens.tokenizer.files", {kList}, kMembership, "a list of files, of python's function"},
    PipelineKey{"tokens.vocab", {kWhole}, kMembership, "a number that all ids are below"},
    PipelineKey{"tokens.begin", {kList}, kMembership, "a list of ids before each record"},
    PipelineKey{"tokens.end", {kList}, kMembership, "a list of ids after each record"},

    PipelineKey{"image", {kTable}, kSection, "how pictures become patches"},
    PipelineKey{"image.patch", {kWhole}, kMembership, "pixels along a side of a patch"},
    PipelineKey{"image.merge", {kWhole}, kMembership, "patches along a side of a token's cell"},
    PipelineKey{"image.max_patches", {kWhole}, kMembership, "patches of a picture, at most"},
    PipelineKey{"image.token", {kWhole}, kMembership, "the id that stands for a cell of a picture"},

    PipelineKey{"balance", {kTable}, kSection, "how steps are laid out"},
    PipelineKey{"balance.strategy", {kText}, kFree, "the name of a strategy"},
    PipelineKey{"balance.cost_model", {kText}, kFree, "a cost model's name, or its .toml file"},
    PipelineKey{"balance.min_share", {kWhole}, kFree, "tokens"},
    PipelineKey{"balance.offload", {kTruth}, kFree, "true or false"},

    PipelineKey{"limits", {kTable}, kSection, "what loading may use"},
    PipelineKey{"limits.memory", {kText}, kFree, "a size, like \"2 GiB\""},
    PipelineKey{"limits.workers", {kWhole, kText}, kFree, "a number, or \"auto\""},
    PipelineKey{"limits.bad_records", {kWhole}, kFree, "how many bad records a source may have"},

    PipelineKey{"source", {kList}, kSection, "[[source]] for each source"},
    PipelineKey{"source.name", {kText}, kMembership, "what the source is called"},
    PipelineKey{
        "source.files", {kList, kText}, kMembership, "patterns of files, like [\"data/*.jsonl\"]"},
    PipelineKey{"source.format", {kText}, kMembership, "the format of all its files"},
    PipelineKey{
        "source.fields", {kTable}, kMembership, "fields of a record, as { text = \"text\" }"},
    PipelineKey{"source.fields.text", {kText}, kMembership, "the name of a field"},
    PipelineKey{"source.fields.prompt", {kText}, kMembership, "the name of a field"},
    PipelineKey{"source.fields.answer", {kText}, kMembership, "the name of a field"},
    PipelineKey{"source.fields.tokens", {kText}, kMembership, "the name of a field"},
    PipelineKey{"source.fields.loss_mask", {kText}, kMembership, "the name of a field"},
    PipelineKey{"source.fields.image", {kText}, kMembership, "the name of a field"},
    PipelineKey{"source.loss_on", {kText}, kMembership, "which tokens have labels"},
    PipelineKey{
        "source.split", {kTable}, kMembership, "shares by split, as { train = 999, valid = 1 }"},
    PipelineKey{"source.split_by",
                {kText, kTable},
                kMembership,
                "\"content\", \"number\" or { field = \"author\" }"},
    PipelineKey{"source.split_by.field", {kText}, kMembership, "the name of a field"},
    PipelineKey{"source.weight",
                {kWhole, kFraction, kList},
                kMembership,
                "a number, or a list of { step, value, ramp }"},
    PipelineKey{"source.weight.step", {kWhole}, kMembership, "the step from which on it holds"},
    PipelineKey{"source.weight.value", {kWhole, kFraction}, kMembership, "a number"},
    PipelineKey{"source.weight.ramp", {kText}, kMembership, "how it gets there"},
    PipelineKey{"source.order", {kText}, kMembership, "the order of a pass"},
    PipelineKey{"source.exhausted", {kText}, kMembership, "what happens at its end"},
    PipelineKey{"source.epochs", {kWhole}, kMembership, "how many passes"},
};

}  // namespace

std::string_view PipelineKey::parent() const {
  const std::size_t dot = path.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : path.substr(0, dot);
}

std::span<const PipelineKey> pipeline_keys() {
  return kPipelineKeys;
}

const PipelineKey* find_pipeline_key(std::string_view path) {
  const auto found = std::ranges::find(kPipelineKeys, path, &PipelineKey::path);
  return found == kPipelineKeys.end() ? nullptr : &*found;
}

std::vector<std::string> names_below(std::string_view parent) {
  std::vector<std::string> names;
  for (const PipelineKey& key : kPipelineKeys) {
    if (key.parent() == parent) names.emplace_back(key.name());
  }
  return names;
}

std::string spelling_hint(std::string_view parent, std::string_view name) {
  if (parent == "source" && (name == "tokenizer" || name == "vocab")) {
    return fmt::format("a stream has one text tokenizer: say tokens.{}, for all sources", name);
  }
  const std::vector<std::string> names = names_below(parent);
  if (const auto near = nearest_spelling(name, names)) {
    return fmt::format("did you mean '{}'?", *near);
  }
  const auto elsewhere = std::ranges::find(kPipelineKeys, name, &PipelineKey::name);
  if (elsewhere != kPipelineKeys.end()) {
    return fmt::format("did you mean '{}'?", elsewhere->path);
  }
  return fmt::format("there may be {}", fmt::join(names, ", "));
}

}  // namespace batchloom::control
