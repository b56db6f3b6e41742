// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/record_fetcher.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "batchloom/base/bytes.h"
#include "batchloom/base/real_runtime.h"
#include "batchloom/control/pipeline_toml.h"
#include "batchloom/control/prepared_sources.h"
#include "batchloom/objstore/local_store_testing.h"
#include "batchloom/objstore/posix_file_ops.h"

namespace batchloom::control {
namespace {

constexpr std::uint32_t kPartTokens = 1'024;

template <class Int>
void write_int(std::ostream& out, Int value) {
  std::array<std::byte, sizeof(Int)> bytes;
  store_le(static_cast<std::make_unsigned_t<Int>>(value), bytes.data());
  out.write(reinterpret_cast<const char*>(bytes.data()), sizeof(Int));
}

/// A Megatron pair of documents of so many u16 ids, which are their places.
void write_pair(const std::string& stem, const std::vector<std::uint32_t>& documents) {
  std::ofstream data(stem + ".bin", std::ios::binary);
  std::ofstream index(stem + ".idx", std::ios::binary);
  index.write("MMIDIDX\0\0", 9);
  write_int(index, std::uint64_t{1});
  index.put(8);  // u16
  write_int(index, std::uint64_t{documents.size()});
  write_int(index, std::uint64_t{documents.size() + 1});
  for (const std::uint32_t tokens : documents) write_int(index, tokens);
  std::uint64_t at = 0;
  for (const std::uint32_t tokens : documents) {
    write_int(index, at);
    at += std::uint64_t{2} * tokens;
    for (std::uint32_t i = 0; i < tokens; ++i) {
      write_int(data, static_cast<std::uint16_t>(i % 60'000));
    }
  }
  for (std::uint64_t i = 0; i <= documents.size(); ++i) write_int(index, i);
}

/// Bytes that this process has asked files for so far.
std::uint64_t read_bytes_so_far() {
  std::ifstream io("/proc/self/io");
  std::string name;
  std::uint64_t value = 0;
  while (io >> name >> value) {
    if (name == "rchar:") return value;
  }
  ADD_FAILURE() << "/proc/self/io does not tell";
  return 0;
}

class RecordFetcherTest : public testing::Test {
 protected:
  void open(const std::vector<std::uint32_t>& documents) {
    write_pair(scratch_.path() + "/a", documents);
    const std::string text = fmt::format(R"([store]
url = "s"
[step]
samples = 4
max_sample_tokens = {}
[tokens]
tokenizer = "ids"
vocab = 60_000
[[source]]
name = "a"
files = "a.bin"
)",
                                         kPartTokens);
    const PipelineInputs inputs{
        .expand = [](const std::string& path) -> Result<std::vector<std::string>> {
          return std::vector{path};
        },
        .read = {}};
    config_ = parse_pipeline(text, scratch_.path() + "/p.toml", inputs).value().config;
    sources_ = PreparedSources::open(config_, *files_, *runtime_, {}, {}).value();
  }

  /// One part, by an order of its own.
  construction::BlockPtr fetch(std::uint64_t record, std::uint32_t part, std::uint32_t tokens) {
    planning::Part drawn;
    drawn.id = {.source = model::SourceId(0),
                .epoch = {},
                .index = model::RecordIndex(record),
                .part = model::PartIndex(part)};
    drawn.tokens = tokens;
    drawn.first_position = std::uint64_t{part} * kPartTokens;
    const FetchOrder order{.step = model::Step(part),
                           .source = model::SourceId(0),
                           .samples = {sources_->set().describe(drawn).value()}};
    FetchPlace place;
    return sources_->fetcher().fetch(order, place, {}).value().block;
  }

  const objstore::ScratchFolder scratch_;
  const std::unique_ptr<Runtime> runtime_ = make_real_runtime();
  const std::unique_ptr<objstore::FileOps> files_ = objstore::make_posix_file_ops();
  PipelineConfig config_;
  std::unique_ptr<PreparedSources> sources_;
};

TEST_F(RecordFetcherTest, ALongRecordIsReadOnceForAllItsParts) {
  constexpr std::uint32_t kParts = 200;
  open({kParts * kPartTokens});
  const std::uint64_t before = read_bytes_so_far();
  for (std::uint32_t part = 0; part < kParts; ++part) {
    const construction::BlockPtr block = fetch(0, part, kPartTokens);
    ASSERT_EQ(block->samples().size(), 1U);
    EXPECT_EQ(block->samples()[0].meta.first_position, std::uint64_t{part} * kPartTokens);
  }
  const std::uint64_t record_bytes = 2 * kParts * kPartTokens;
  EXPECT_GE(read_bytes_so_far() - before, record_bytes);
  EXPECT_LT(read_bytes_so_far() - before, 2 * record_bytes);
}

TEST_F(RecordFetcherTest, ABadLongRecordIsBadForEachOfItsParts) {
  open({3 * kPartTokens, 61'000, 5});  // The second has ids up to 59,999 and then 0 again: good.
  {
    std::fstream data(scratch_.path() + "/a.bin", std::ios::binary | std::ios::in | std::ios::out);
    data.seekp(2 * (2 * kPartTokens + 7));
    write_int(data, std::uint16_t{60'001});
  }
  sources_ = PreparedSources::open(config_, *files_, *runtime_, {}, {}).value();
  for (std::uint32_t part = 0; part < 3; ++part) EXPECT_EQ(fetch(0, part, kPartTokens), nullptr);
  EXPECT_NE(fetch(1, 0, kPartTokens), nullptr);
  EXPECT_NE(fetch(2, 0, 5), nullptr);
}

}  // namespace
}  // namespace batchloom::control
