// SPDX-License-Identifier: Apache-2.0
#include "cli/args.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "cli/args_testing.h"

namespace batchloom::cli {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST(Args, ReadsTheOptionsOfAllCommands) {
  const auto init = parse_as<StoreInit>({"store", "init", "./x", "--fsync=none"});
  EXPECT_EQ(init.stream.location.folder, "./x");
  EXPECT_EQ(init.stream.location.fsync, objstore::FsyncPolicy::kNone);
  EXPECT_FALSE(init.stream.json);

  const auto ls = parse_as<StoreLs>({"store", "ls", "--from=08", "--limit=2", "file:///x"});
  EXPECT_EQ(ls.stream.location.url, "file:///x");
  EXPECT_EQ(ls.stream.location.folder, "/x");
  EXPECT_EQ(ls.stream.location.fsync, objstore::FsyncPolicy::kAlways);
  EXPECT_EQ(ls.from, store::Step(8));
  EXPECT_EQ(ls.limit, 2u);

  EXPECT_EQ(parse_as<StoreShow>({"store", "show", "/x", "--slot=3"}).slot, store::Slot(3));
  EXPECT_EQ(parse_as<StoreShow>({"store", "show", "/x", "--step=0"}).step, store::Step(0));
  const auto verify = parse_as<StoreVerify>({"store", "verify", "/x", "--json"});
  EXPECT_TRUE(verify.stream.json);
  EXPECT_EQ(verify.depth, store::VerifyDepth::kRecords);
  EXPECT_EQ(parse_as<StoreVerify>({"store", "verify", "/x", "--depth=payload"}).depth,
            store::VerifyDepth::kPayload);
  EXPECT_EQ(parse_as<StoreFence>({"store", "fence", "/x", "--producer=a-1"}).producer, "a-1");
  EXPECT_EQ(parse_as<StoreProbe>({"store", "probe", "/x"}).size_bytes, std::size_t{9} << 20);
  EXPECT_EQ(parse_as<StoreProbe>({"store", "probe", "/x", "--size=0"}).size_bytes, 0u);
}

TEST(Args, TakesValuesAfterASpaceToo) {
  const auto ls = parse_as<StoreLs>({"store", "ls", "/x", "--from", "5", "--limit", "1"});
  EXPECT_EQ(ls.from, store::Step(5));
  EXPECT_EQ(ls.limit, 1u);
}

TEST(Args, ReadsASimulation) {
  const auto many = parse_as<SimStore>(
      {"sim", "store", "--seeds=20", "--first-seed=7", "--jobs=3", "--break=term-check", "--json"});
  EXPECT_EQ(many.options.seeds, 20u);
  EXPECT_EQ(many.options.first_seed, 7u);
  EXPECT_EQ(many.options.jobs, 3u);
  EXPECT_EQ(many.options.broken, store::Safeguard::kTermCheck);
  EXPECT_TRUE(many.json);
  const auto one = parse_as<SimStore>({"sim", "store", "--seed=9", "--without=crash:0,put:17"});
  EXPECT_EQ(one.options.seeds, 1u);
  EXPECT_EQ(one.options.first_seed, 9u);
  EXPECT_EQ(simulator::to_string(one.options.without), "crash:0,put:17");
}

TEST(Args, PrintsHelpAndVersion) {
  const auto version = std::get<Answer>(parse({"--version"}));
  EXPECT_EQ(version.exit_code, kDone);
  EXPECT_EQ(version.out, "batchloom 1.2.3\n");
  const auto help = std::get<Answer>(parse({"store", "ls", "--help"}));
  EXPECT_EQ(help.exit_code, kDone);
  EXPECT_THAT(help.out, HasSubstr("--limit"));
  EXPECT_THAT(help.err, IsEmpty());
}

TEST(Args, RefusesWhatMakesNoSense) {
  EXPECT_THAT(usage_error({}), HasSubstr("batchloom --help"));
  EXPECT_THAT(usage_error({"store"}), HasSubstr("batchloom store --help"));
  EXPECT_THAT(usage_error({"store", "ls"}), HasSubstr("URL is required"));
  EXPECT_THAT(usage_error({"store", "ls", "s3://b/p"}), HasSubstr("not supported yet"));
  EXPECT_THAT(usage_error({"store", "ls", "/x", "--from=-1"}), HasSubstr("--from: '-1' is not"));
  EXPECT_THAT(usage_error({"store", "ls", "/x", "--from=1x"}), HasSubstr("--from: '1x' is not"));
  EXPECT_THAT(usage_error({"store", "ls", "/x", "--limit=0"}), HasSubstr("from 1 to"));
  EXPECT_THAT(usage_error({"store", "ls", "/x", "--from=99999999999999999999"}),
              HasSubstr("is not a whole number"));
  EXPECT_THAT(usage_error({"store", "ls", "/x", "--from=1", "--from=2"}), HasSubstr("--from"));
  EXPECT_THAT(usage_error({"store", "init", "/x", "--fsync=maybe"}),
              HasSubstr("neither always nor none"));
  EXPECT_THAT(usage_error({"store", "show", "/x", "--slot=1", "--step=1"}),
              HasSubstr("--slot excludes --step"));
  EXPECT_THAT(usage_error({"store", "show", "/x", "--slot=0"}), HasSubstr("from 1 to"));
  EXPECT_THAT(usage_error({"store", "verify", "/x", "--depth=all"}),
              HasSubstr("neither manifest nor records nor payload"));
  EXPECT_THAT(usage_error({"store", "fence", "/x"}), HasSubstr("--producer is required"));
  EXPECT_THAT(usage_error({"store", "fence", "/x", "--producer=A"}), HasSubstr("is not a name"));
  EXPECT_THAT(usage_error({"sim", "store", "--break=x"}), HasSubstr("choose one of drop-rule"));
  EXPECT_THAT(usage_error({"sim", "store", "--seed=1", "--seeds=2"}), HasSubstr("excludes"));
  EXPECT_THAT(usage_error({"sim", "store", "--without=crash:0"}), HasSubstr("requires --seed"));
  EXPECT_THAT(usage_error({"sim", "store", "--seed=1", "--without=x"}), HasSubstr("'x' is no"));
  EXPECT_THAT(usage_error({"store", "ls", "/x", "/y"}), HasSubstr("unexpected argument /y"));
}

TEST(Args, HintsAtTheNearestSpelling) {
  EXPECT_THAT(usage_error({"stroe", "ls", "/x"}), HasSubstr("unknown command stroe; did you mean "
                                                            "store?"));
  EXPECT_THAT(usage_error({"store", "verfy", "/x"}),
              HasSubstr("batchloom store: unknown command verfy; did you mean verify?"));
  EXPECT_THAT(usage_error({"store", "ls", "/x", "--form=3"}),
              HasSubstr("batchloom store ls: unknown option --form; did you mean --from?"));
  EXPECT_THAT(usage_error({"store", "fence", "/x", "--prodcuer", "a"}),
              HasSubstr("did you mean --producer?"));
  EXPECT_THAT(usage_error({"store", "ls", "/x", "--colour"}), Not(HasSubstr("did you mean")));
}

TEST(Args, HasLongOptionsOnly) {
  EXPECT_THAT(usage_error({"-h"}), HasSubstr("unknown option -h"));
  EXPECT_THAT(usage_error({"store", "ls", "-h"}), HasSubstr("unknown option -h"));
}

}  // namespace
}  // namespace batchloom::cli
