// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/args_testing.h"

namespace batchloom::cli {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

TEST(ArgsPipeline, MetricsAreServedWhereItIsSaid) {
  EXPECT_EQ(parse_as<RunPipeline>({"run", "p.toml"}).metrics, std::nullopt);
  const auto run = parse_as<RunPipeline>({"run", "p.toml", "--metrics=127.0.0.1:9464"});
  EXPECT_EQ(run.metrics, (HostPort{"127.0.0.1", 9464}));
  EXPECT_THAT(usage_error({"run", "p.toml", "--metrics=9464"}),
              HasSubstr("--metrics: '9464' is no HOST:PORT"));
}

TEST(ArgsPipeline, TopTakesAPlaceOrAUrl) {
  const HostPort place{"localhost", 9464};
  for (const char* text : {"localhost:9464", "http://localhost:9464",
                           "http://localhost:9464/metrics", "http://localhost:9464/"}) {
    EXPECT_EQ(parse_as<Top>({"top", text}).place, place) << text;
  }
  const auto top = parse_as<Top>({"top", "localhost:9464", "--once", "--every=50ms"});
  EXPECT_TRUE(top.once);
  EXPECT_EQ(top.every, milliseconds(50));
  EXPECT_FALSE(parse_as<Top>({"top", "localhost:9464"}).once);
}

TEST(ArgsPipeline, TopRefusesWhatIsNoPlace) {
  EXPECT_THAT(usage_error({"top"}), HasSubstr("HOST:PORT"));
  EXPECT_THAT(usage_error({"top", "http://localhost/metrics"}), HasSubstr("is no HOST:PORT"));
  EXPECT_THAT(usage_error({"top", "https://localhost:1"}), HasSubstr("is no HOST:PORT"));
  EXPECT_THAT(usage_error({"top", "localhost:0"}), HasSubstr("has no port; the run's log says"));
  EXPECT_THAT(usage_error({"top", "localhost:1", "--every=0s"}), HasSubstr("--every: a pause of"));
}

}  // namespace
}  // namespace batchloom::cli
