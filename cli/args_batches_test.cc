// SPDX-License-Identifier: Apache-2.0
// The commands that write, read and look after whole batches.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "cli/args_testing.h"

namespace batchloom::cli {
namespace {

using testing::HasSubstr;

/// What is wrong with `produce /x --synthetic --producer=a` and these options.
std::string refused_produce(std::vector<const char*> options) {
  std::vector<const char*> args = {"produce", "/x", "--synthetic", "--producer=a"};
  args.insert(args.end(), options.begin(), options.end());
  return usage_error(args);
}

TEST(BatchArgs, ReadsAProducer) {
  const auto plain = parse_as<Produce>({"produce", "/x", "--synthetic", "--producer=a"});
  EXPECT_EQ(plain.producer, "a");
  EXPECT_EQ(plain.steps, std::nullopt);
  EXPECT_EQ(plain.lead, 32u);
  const auto full =
      parse_as<Produce>({"produce", "/x", "--synthetic", "--producer=a", "--seed=5", "--ranks=3",
                         "--steps-per-object=2", "--records-per-run=7", "--record-tokens=9",
                         "--ring", "--token-bits=32", "--source=4", "--steps=10", "--uploaders=6",
                         "--lead=unlimited", "--end"});
  EXPECT_EQ(full.config.seed, 5u);
  EXPECT_EQ(full.config.ranks, 3u);
  EXPECT_EQ(full.config.steps_per_object, 2u);
  EXPECT_EQ(full.config.records_per_run, 7u);
  EXPECT_EQ(full.config.record_tokens, 9u);
  EXPECT_TRUE(full.config.ring);
  EXPECT_EQ(full.config.token_width, store::TokenWidth::k32);
  EXPECT_EQ(full.config.source, model::SourceId(4));
  EXPECT_EQ(full.steps, 10u);
  EXPECT_EQ(full.uploaders, 6u);
  EXPECT_EQ(full.lead, std::nullopt);
  EXPECT_TRUE(full.end);
}

TEST(BatchArgs, RefusesAProducerThatMakesNoSense) {
  EXPECT_THAT(usage_error({"produce", "/x", "--producer=a"}), HasSubstr("--synthetic is required"));
  EXPECT_THAT(usage_error({"produce", "/x", "--synthetic"}), HasSubstr("--producer is required"));
  EXPECT_THAT(refused_produce({"--ranks=0"}), HasSubstr("--ranks: '0' is not a whole number"));
  EXPECT_THAT(refused_produce({"--record-tokens=1"}), HasSubstr("at least 2 tokens"));
  EXPECT_THAT(refused_produce({"--ranks=4000000000"}), HasSubstr("at most"));
  EXPECT_THAT(refused_produce({"--steps=5", "--steps-per-object=2"}),
              HasSubstr("not a multiple of --steps-per-object=2"));
  EXPECT_THAT(refused_produce({"--lead=0"}), HasSubstr("neither a whole number from 1 nor"));
  EXPECT_THAT(refused_produce({"--lead=some"}), HasSubstr("nor unlimited"));
  EXPECT_THAT(refused_produce({"--token-bits=8"}), HasSubstr("neither 16 nor 32"));
  EXPECT_THAT(refused_produce({"--end"}), HasSubstr("requires --steps"));
}

TEST(BatchArgs, ReadsAConsumer) {
  const auto plain = parse_as<Consume>({"consume", "/x", "--rank=7"});
  EXPECT_EQ(plain.rank, model::HdpRank(7));
  EXPECT_EQ(plain.world, std::nullopt);
  EXPECT_EQ(plain.steps, std::nullopt);
  const auto full =
      parse_as<Consume>({"consume", "/x", "--rank=1", "--world=2", "--group=g", "--report",
                         "--report-every=3", "--pin-every=4", "--keep=5", "--start=6",
                         "--min-slot=7", "--steps=8", "--prefetch=9MiB", "--hashes=-", "--paced"});
  EXPECT_EQ(full.world, 2u);
  EXPECT_EQ(full.group, "g");
  EXPECT_TRUE(full.report);
  EXPECT_EQ(full.report_every, 3u);
  EXPECT_EQ(full.pin_every, 4u);
  EXPECT_EQ(full.keep, 5u);
  EXPECT_EQ(full.start, store::Step(6));
  EXPECT_EQ(full.min_slot, store::Slot(7));
  EXPECT_EQ(full.steps, 8u);
  EXPECT_EQ(full.prefetch_bytes, 9u << 20);
  EXPECT_EQ(full.hashes, "-");
  EXPECT_TRUE(full.paced);
}

TEST(BatchArgs, RefusesAConsumerThatMakesNoSense) {
  EXPECT_THAT(usage_error({"consume", "/x"}), HasSubstr("--rank is required"));
  EXPECT_THAT(usage_error({"consume", "/x", "--rank=0", "--report"}), HasSubstr("--group=NAME"));
  EXPECT_THAT(usage_error({"consume", "/x", "--rank=0", "--pin-every=1"}),
              HasSubstr("--group=NAME"));
  EXPECT_THAT(usage_error({"consume", "/x", "--rank=2", "--world=2"}),
              HasSubstr("a world of 2 has ranks 0 to 1"));
  EXPECT_EQ(parse_as<Consume>({"consume", "/x", "--rank=0", "--world=65536"}).world, 65536u);
  for (const char* world : {"--world=0", "--world=65537", "--world=4294967295"}) {
    EXPECT_THAT(usage_error({"consume", "/x", "--rank=0", world}),
                HasSubstr("is not a whole number from 1 to 65536"));
  }
  EXPECT_THAT(usage_error({"consume", "/x", "--rank=0", "--group=g", "--keep=3"}),
              HasSubstr("requires --pin-every"));
  EXPECT_THAT(usage_error({"consume", "/x", "--rank=0", "--group=g", "--report-every=3"}),
              HasSubstr("requires --report"));
  EXPECT_THAT(usage_error({"consume", "/x", "--rank=0", "--prefetch=9MB"}),
              HasSubstr("'9MB' is no size"));
  EXPECT_THAT(usage_error({"consume", "/x", "--rank=0", "--group=G"}), HasSubstr("is not a name"));
}

TEST(BatchArgs, ReadsWhatDeletes) {
  const auto gc = parse_as<StoreGc>(
      {"store", "gc", "/x", "--yes", "--list", "--every=200ms", "--slots-kept=5"});
  EXPECT_TRUE(gc.yes && gc.list && !gc.dry_run);
  EXPECT_EQ(gc.every, std::chrono::milliseconds(200));
  EXPECT_EQ(gc.slots_kept, 5u);
  EXPECT_TRUE(parse_as<StoreGc>({"store", "gc", "/x", "--dry-run"}).dry_run);
  EXPECT_THAT(usage_error({"store", "gc", "/x"}), HasSubstr("say --dry-run to see"));
  EXPECT_THAT(usage_error({"store", "gc", "/x", "--dry-run", "--yes"}), HasSubstr("excludes"));
  EXPECT_THAT(usage_error({"store", "gc", "/x", "--dry-run", "--every=1s"}),
              HasSubstr("requires --yes"));
  EXPECT_THAT(usage_error({"store", "gc", "/x", "--yes", "--every=1"}),
              HasSubstr("'1' is no time"));
}

TEST(BatchArgs, ReadsPins) {
  const auto pin = parse_as<StorePin>({"store", "pin", "/x", "--group=g", "--id=i", "--step=3"});
  EXPECT_EQ(pin.request.group, "g");
  EXPECT_EQ(pin.request.id, "i");
  EXPECT_EQ(pin.request.step, store::Step(3));
  EXPECT_EQ(parse_as<StoreUnpin>({"store", "unpin", "/x", "--group=g", "--id=i"}).id, "i");
  EXPECT_TRUE(parse_as<StoreUnpin>({"store", "unpin", "/x", "--group=g", "--live"}).live);
  parse_as<StorePins>({"store", "pins", "/x"});
  EXPECT_THAT(usage_error({"store", "pin", "/x", "--group=g", "--id=i"}),
              HasSubstr("--step is required"));
  EXPECT_THAT(usage_error({"store", "pin", "/x", "--group=g", "--id=.", "--step=3"}),
              HasSubstr("is not a name"));
  EXPECT_THAT(usage_error({"store", "unpin", "/x", "--group=g"}), HasSubstr("say which"));
  EXPECT_THAT(usage_error({"store", "unpin", "/x", "--group=g", "--id=i", "--live"}),
              HasSubstr("excludes"));
}

TEST(BatchArgs, ReadsEventsAndOracles) {
  EXPECT_EQ(parse_as<StoreSkip>({"store", "skip", "/x", "--step=3"}).step, store::Step(3));
  parse_as<StoreEnd>({"store", "end", "/x"});
  parse_as<StoreReopen>({"store", "reopen", "/x"});
  const auto show = parse_as<StoreShow>({"store", "show", "/x", "--step=3", "--rank=1"});
  EXPECT_EQ(show.rank, model::HdpRank(1));
  EXPECT_THAT(usage_error({"store", "show", "/x", "--rank=1"}), HasSubstr("requires --step"));
  const auto batches =
      parse_as<SimBatches>({"sim", "batches", "--steps=3", "--first-step=2", "--rank=7"});
  EXPECT_EQ(batches.steps, 3u);
  EXPECT_EQ(batches.first_step, 2u);
  EXPECT_EQ(batches.rank, model::HdpRank(7));
  EXPECT_THAT(usage_error({"sim", "batches", "--steps=3", "--rank=8"}),
              HasSubstr("--ranks=8 has ranks 0 to 7"));
}

}  // namespace
}  // namespace batchloom::cli
