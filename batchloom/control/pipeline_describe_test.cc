// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/pipeline_describe.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include "batchloom/control/pipeline_keys.h"
#include "batchloom/control/pipeline_testing.h"

namespace batchloom::control {
namespace {

using testing::HasSubstr;

/// Of the shortest pipeline.
constexpr std::string_view kDescribed = R"(seed = 0                                  # default

[run]
# steps: until the sources stop
split = "train"                           # default

[store]
url = "s"
lead_steps = 32                           # default
codec = "raw"                             # default
# retain: max_bytes; without, the producer waits for no room
# endpoint: S3 only
# region: S3 only
# profile: S3 only

[topology]
axes = "dp=1"                             # default
capacity = 8192                           # default

[step]
# tokens: samples are counted
samples = 4
max_sample_tokens = 100
over_length = "split"                     # default

[tokens]
tokenizer = "bytes"
vocab = 256                               # default
begin = []                                # default
end = []                                  # default

[image]
# patch: no source has pictures
# merge: no source has pictures
# max_patches: no source has pictures
# token: no source has pictures

[balance]
strategy = "two_level"                    # default
cost_model = "h200-llama7b"               # default
min_share = 4096                          # default
offload = true                            # default

[limits]
memory = "2 GiB"                          # default
workers = "auto"                          # default
bad_records = 100                         # default

[[source]]
name = "a"
files = ["data/code.jsonl"]
format = "jsonl"                          # default
fields = { text = "text" }                # default
loss_on = "all"                           # default
split = { train = 1 }                     # default
split_by = "content"                      # default
weight = 1                                # default
order = "random"                          # default
exhausted = "stop"                        # default
# epochs: one pass
)";

TEST(PipelineDescribe, MarksWhatTheFileDoesNotSay) {
  EXPECT_EQ(describe(parse_plain(shortest_pipeline_text()).value()), kDescribed);
}

RC_GTEST_PROP(PipelineDescribeProperty, IsReadAsTheSameConfig, (std::uint64_t seed)) {
  Random random(seed);
  const PipelineFile pipeline{"p.toml", any_pipeline(random), {}};
  const std::string text = describe(pipeline);
  const auto read = parse_plain(text);
  RC_LOG() << text << read.status().to_string();
  RC_ASSERT(read.is_ok());
  RC_ASSERT(read->config == pipeline.config);
  // Now the file says all of it.
  const std::string again = describe(*read);
  RC_ASSERT(again.find("# default") == std::string::npos);
  RC_ASSERT(parse_plain(again)->config == pipeline.config);
}

TEST(PipelineDescribe, HasEverySettingInTheOrderOfKeys) {
  const PipelineFile pipeline = parse_plain(shortest_pipeline_text()).value();
  std::vector<std::string> told;
  for (const Setting& setting : settings_of(pipeline.config, pipeline.lines)) {
    told.push_back(setting.key_path());
    EXPECT_EQ(setting.origin == SettingOrigin::kAbsent, setting.value.empty());
    EXPECT_EQ(setting.note.empty(), !setting.value.empty()) << setting.key;
  }
  std::vector<std::string> expected;
  for (const PipelineKey& key : pipeline_keys()) {
    const PipelineKey* parent = find_pipeline_key(key.parent());
    const bool inner = parent != nullptr && parent->effect != KeyEffect::kSection;
    if (key.effect != KeyEffect::kSection && !inner) expected.emplace_back(key.path);
  }
  EXPECT_EQ(told, expected);
}

TEST(PipelineDescribe, KnowsWhoseSettingItIs) {
  const PipelineFile pipeline = parse_plain(plain_pipeline_text()).value();
  const auto settings = settings_of(pipeline.config, pipeline.lines);
  const auto find = [&](std::string_view path) {
    return *std::ranges::find(settings, path, &Setting::path);
  };
  EXPECT_EQ(find("source.code.order").value, "\"file\"");
  EXPECT_EQ(find("source.code.order").origin, SettingOrigin::kSet);
  EXPECT_EQ(find("source.docs.order").origin, SettingOrigin::kDefault);
  EXPECT_EQ(find("store.retain").value, "{ max_bytes = \"200 GiB\" }");
  EXPECT_EQ(to_string(find("source.docs.epochs").origin), "absent");
}

}  // namespace
}  // namespace batchloom::control
