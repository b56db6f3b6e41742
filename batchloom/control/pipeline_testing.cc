// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/pipeline_testing.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "batchloom/base/hash.h"

namespace batchloom::control {
namespace {

std::string model_text(const std::string& name) {
  std::ifstream file(fmt::format("{}/sentencepiece/{}.model", BATCHLOOM_FIXTURES, name),
                     std::ios::binary);
  EXPECT_TRUE(file.is_open()) << name;
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

PipelineInputs NamedFiles::inputs() const {
  return {.expand = [this](const std::string& pattern) -> Result<std::vector<std::string>> {
            const auto found = matches.find(pattern);
            return found == matches.end() ? std::vector<std::string>() : found->second;
          },
          .read = [this](const std::string& path) -> Result<std::string> {
            const auto found = texts.find(path);
            if (found != texts.end()) return found->second;
            return Status::not_found(fmt::format("{}: there is no such file", path));
          }};
}

const NamedFiles& plain_files() {
  static const NamedFiles files{
      .matches = {{"data/docs-*.jsonl", {"data/docs-0.jsonl", "data/docs-1.jsonl"}},
                  {"data/docs-1*", {"data/docs-1.jsonl"}},
                  {"data/docs-1*.jsonl", {"data/docs-1.jsonl"}},
                  {"data/code.jsonl", {"data/code.jsonl"}},
                  {"ids/*", {"ids/a.bin", "ids/a.idx", "ids/b.bin", "ids/b.idx"}},
                  {"ids/b.idx", {"ids/b.idx"}},
                  {"data/x.parquet", {"data/x.parquet"}},
                  {"data/x.arrow", {"data/x.arrow"}},
                  {"data/x.tar", {"data/x.tar"}},
                  {"data/odd.name", {"data/odd.name"}}},
      .texts = {{"unigram.model", model_text("unigram")},
                {"bpe.model", model_text("bpe")},
                {"moved/bpe.model", model_text("bpe")},
                {"chat.py", "def f(texts): ..."},
                {"moved/chat/__init__.py", "def f(texts): ..."},
                {"moved/a.json", "{}"},
                {"a.json", "{}"},
                {"b.json", "{ }"}}};
  return files;
}

std::string_view plain_pipeline_text() {
  return R"(seed = 17

[run]
steps = 10_000
split = "train"

[store]
url = "./stream"
lead_steps = 64
retain = { max_bytes = "200 GiB" }

[topology]
axes = "pp=1 dp=4 cp=2 tp=1"
capacity = 8_192

[step]
tokens = 524_288
max_sample_tokens = 16_384

[tokens]
tokenizer = "bytes"
vocab = 300
end = [257]

[balance]
strategy = "two_level"
cost_model = "h200-llama7b"

[limits]
memory = "3 GiB"
workers = "auto"

[[source]]
name = "docs"
files = ["data/docs-*.jsonl"]
fields = { text = "body" }
split = { train = 999, valid = 1 }
weight = 0.5

[[source]]
name = "code"
files = "data/code.jsonl"
fields = { prompt = "q", answer = "a" }
loss_on = "answer"
order = "file"
weight = [{ step = 0, value = 0.1 }, { step = 2000, value = 0.4, ramp = "linear" }]
exhausted = "repeat"
epochs = 3
)";
}

std::string picture_pipeline_text() {
  const std::string text =
      text_with(plain_pipeline_text(), "[balance]",
                "[image]\npatch = 16\nmerge = 2\nmax_patches = 64\ntoken = 299\n\n[balance]");
  return text_with(text_with(text, "data/code.jsonl", "data/x.tar"), "{ prompt = \"q\"",
                   "{ image = \"jpg\", prompt = \"q\"");
}

std::string_view shortest_pipeline_text() {
  return R"([store]
url = "s"
[step]
samples = 4
max_sample_tokens = 100
[tokens]
tokenizer = "bytes"
[[source]]
name = "a"
files = "data/code.jsonl"
)";
}

std::string text_with(std::string_view text, std::string_view stretch, std::string_view instead) {
  std::string changed(text);
  const std::size_t at = changed.find(stretch);
  EXPECT_NE(at, std::string::npos) << stretch;
  if (at != std::string::npos) changed.replace(at, stretch.size(), instead);
  return changed;
}

Result<PipelineFile> parse_plain(std::string_view text) {
  return parse_pipeline(text, "p.toml", plain_files().inputs());
}

std::string refusal_with(std::string_view stretch, std::string_view instead) {
  const auto parsed = parse_plain(text_with(plain_pipeline_text(), stretch, instead));
  return parsed.is_ok() ? "accepted" : parsed.status().to_string();
}

std::vector<std::vector<FileFingerprint>> fingerprints_of(const PipelineConfig& config) {
  std::vector<std::vector<FileFingerprint>> files;
  for (const SourceConfig& source : config.sources) {
    auto& of_source = files.emplace_back();
    for (const std::string& path : source.paths) {
      of_source.push_back({path, 100 + path.size(), xxh3_64(as_bytes(path))});
    }
  }
  return files;
}

Membership membership_of_plain(std::string_view text) {
  const auto parsed = parse_plain(text);
  EXPECT_TRUE(parsed.is_ok()) << parsed.status().to_string() << text;
  if (!parsed.is_ok()) return {};
  return Membership::create(parsed->config, fingerprints_of(parsed->config)).value();
}

}  // namespace batchloom::control
