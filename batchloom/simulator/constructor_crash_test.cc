// SPDX-License-Identifier: Apache-2.0
// Constructors in processes of their own, which crash and hang, and a producer that crashes, too,
// on a network that loses requests and replies. Whatever happens, ranks get each step once, and all
// attempts at one batch have the same bytes.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <utility>

#include "batchloom/client/consumer.h"
#include "batchloom/construction/constructor_pool.h"
#include "batchloom/construction/corpus_testing.h"
#include "batchloom/objstore/retrying_store.h"
#include "batchloom/simulator/actor.h"
#include "batchloom/simulator/sim_seeds_testing.h"
#include "batchloom/simulator/sim_store.h"
#include "batchloom/store/keys.h"
#include "batchloom/store/producer_session.h"

namespace batchloom::simulator {
namespace {

using construction::ConstructionJob;
using construction::Constructor;
using construction::ConstructorPool;
using construction::Corpus;
using construction::StreamConstructor;
using model::HdpRank;
using objstore::Fault;
using objstore::Operation;
using planning::PlannedStep;
using store::Seq;

constexpr std::size_t kHosts = 3;
constexpr std::size_t kHostCrashesMax = kHosts - 1;
constexpr std::uint64_t kProducerCrashesMax = 2;
constexpr std::uint32_t kSlices = 3;
constexpr std::size_t kStepsOfRun = 8;
constexpr std::chrono::seconds kAttemptMax{1};

objstore::FaultPlan lossy_network(std::uint64_t seed) {
  objstore::FaultSettings faults{.seed = seed};
  for (const Operation operation : {Operation::kGet, Operation::kHead, Operation::kPut}) {
    faults.rates.push_back({Fault::kLostRequest, operation, 0.03});
    faults.rates.push_back({Fault::kLostReply, operation, 0.03});
    faults.rates.push_back({Fault::kServerError503, operation, 0.03});
  }
  faults.rates.push_back({Fault::kLateApply, Operation::kPut, 0.03});
  return objstore::FaultPlan::make(std::move(faults)).value();
}

class NobodyWatches final : public BucketObserver {
 public:
  void on_put(std::string_view, const Bytes&) override {}
  void on_remove(std::string_view) override {}
};

/// A process and its way to the store.
struct Host {
  SimProcess* process = nullptr;
  std::unique_ptr<objstore::ObjectStore> client;
  std::unique_ptr<objstore::RetryingStore> objects;

  Result<std::unique_ptr<store::Stream>> open_stream(Counters& counters) const {
    return store::Stream::open({*process, *objects, counters}, {}, {});
  }
};

/// Sends jobs to another process, and waits for what comes back.
class RemoteConstructor final : public Constructor {
 public:
  using Options = std::shared_ptr<const construction::ObjectOptions>;

  RemoteConstructor(Runtime& here, Host& host, Counters& counters, store::Session session,
                    Options options)
      : here_(here),
        host_(host),
        counters_(counters),
        session_(std::move(session)),
        options_(std::move(options)) {}

  const std::string& name() const override { return host_.process->name(); }

  Result<store::PendingBatch> construct(const ConstructionJob& job,
                                        const CallOptions& call) override {
    if (host_.process->crashed()) return Status::cancelled("no such process");
    const auto reply = std::make_shared<Reply>(here_);
    const auto work = [reply, job, deadline = call.deadline, &host = host_, &counters = counters_,
                       session = session_, options = options_] {
      reply->batch = attempt(host, counters, session, options, job, deadline);
      reply->came->set();
    };
    host_.process->start("construct", work);
    BL_RETURN_IF_ERROR(reply->came->wait(call));
    return std::move(reply->batch);
  }

 private:
  struct Reply {
    explicit Reply(Runtime& here) : came(here.make_event()) {}
    std::unique_ptr<Event> came;
    Result<store::PendingBatch> batch = Status::internal("no attempt was made");
  };

  /// In the other process.
  static Result<store::PendingBatch> attempt(const Host& host, Counters& counters,
                                             const store::Session& session, const Options& options,
                                             const ConstructionJob& job, Time deadline) {
    BL_ASSIGN_OR_RETURN(const auto stream, host.open_stream(counters));
    StreamConstructor constructor("there", *stream, session, options);
    return constructor.construct(job, {.deadline = deadline});
  }

  Runtime& here_;
  Host& host_;
  Counters& counters_;
  const store::Session session_;
  const Options options_;
};

/// One seed.
class CrashWorld {
 public:
  explicit CrashWorld(std::uint64_t seed)
      : seed_(seed), world_(seed), store_(world_, lossy_network(seed), nobody_) {
    steps_ = corpus_.plan(planning::Balance::kTwoLevel, "dp=3", kStepsOfRun);
    jobs_ = corpus_.jobs(steps_);
  }

  void run() {
    ASSERT_EQ(steps_.size(), kStepsOfRun);
    start("setup", [this](Host& host) {
      while (!store::init_stream({*host.process, *host.objects, counters_}, "test", {}).is_ok())
        continue;
      for (std::size_t i = 0; i < kHosts; ++i)
        hosts_.push_back(&connect(fmt::format("host-{}", i)));
      start_producer();
      for (HdpRank rank; rank.value < kSlices; ++rank) {
        start("consumer", [this, rank](Host& there) { consume(there, rank); });
      }
      start("chaos", [this](Host& there) { make_trouble(*there.process); });
    });
    ASSERT_EQ(world_.run().to_string(), "ok");
    check_ranks();
    check_objects();
  }

  std::uint64_t host_crashes() const { return host_crashes_; }
  std::uint64_t producer_crashes() const { return producer_crashes_; }
  std::uint64_t spare_attempts() const { return spare_attempts_; }

 private:
  Host& connect(const std::string& name) {
    auto host = std::make_unique<Host>();
    host->process = &world_.add_process(name);
    host->client = store_.connect(*host->process);
    host->objects =
        std::make_unique<objstore::RetryingStore>(*host->client, *host->process, counters_);
    all_hosts_.push_back(std::move(host));
    return *all_hosts_.back();
  }

  void start(const std::string& name, std::function<void(Host&)> body) {
    Host& host = connect(name);
    host.process->start("main", [&host, body = std::move(body)] { body(host); });
  }

  /// One after the other, until all is published.
  void start_producer() {
    start("producer", [this](Host& host) {
      producer_ = host.process;
      const Status ended = produce(host);
      if (ended.is_ok()) {
        produced_ = true;
      } else {
        start_producer();
      }
    });
  }

  Status produce(Host& host) {
    Runtime& runtime = *host.process;
    BL_ASSIGN_OR_RETURN(const auto stream, host.open_stream(counters_));
    BL_ASSIGN_OR_RETURN(const auto session, store::ProducerSession::open(*stream, "main", {}));
    std::vector<std::unique_ptr<RemoteConstructor>> owned;
    std::vector<Constructor*> all;
    for (Host* other : hosts_) {
      owned.push_back(std::make_unique<RemoteConstructor>(runtime, *other, counters_,
                                                          session->session(), corpus_.options()));
      all.push_back(owned.back().get());
    }
    const auto commit = [&session](std::span<const store::PendingBatch> batches,
                                   const CallOptions& call) {
      return session->commit(batches, call).status();
    };
    ConstructorPool pool(runtime, all, commit,
                         {.first = session->next_seq(),
                          .bytes_max = 3 * jobs_[0].size_bytes(),
                          .attempt_max = kAttemptMax});
    for (Seq seq = session->next_seq(); seq.value < jobs_.size(); ++seq) {
      BL_RETURN_IF_ERROR(pool.submit(jobs_[seq.value], {}));
    }
    const construction::PoolEnd end = pool.stop({});
    return end.all_committed() ? Status::ok() : end.reason;
  }

  /// Until it has all steps.
  void consume(Host& host, HdpRank rank) {
    std::vector<client::StepPtr>& got = got_[rank.value];
    while (got.size() < kStepsOfRun) {
      const auto stream = host.open_stream(counters_);
      if (!stream.is_ok()) continue;
      client::HeadFeed feed(**stream);
      client::ConsumerOptions options;
      options.rank = rank;
      options.ranks = kSlices;
      options.start = store::Step(got.size());
      const auto consumer = client::Consumer::open(feed, std::move(options), {});
      while (consumer.is_ok() && got.size() < kStepsOfRun) {
        auto step = (*consumer)->next({});
        if (!step.is_ok()) break;
        got.push_back(*std::move(step));
      }
    }
  }

  void make_trouble(SimProcess& here) {
    while (!produced_) {
      const Duration pause = std::chrono::milliseconds(1 + draw(here, 40));
      static_cast<void>(here.sleep_until({.deadline = here.now() + pause}));
      Host& host = *hosts_[draw(here, kHosts)];
      switch (draw(here, 8)) {
        case 0:
          if (host_crashes_ < kHostCrashesMax && !host.process->crashed()) {
            ++host_crashes_;
            host.process->crash();
          }
          break;
        case 1:
          if (producer_crashes_ < kProducerCrashesMax && producer_ != nullptr) {
            ++producer_crashes_;
            std::exchange(producer_, nullptr)->crash();
          }
          break;
        case 2:
          host.process->suspend();
          static_cast<void>(here.sleep_until({.deadline = here.now() + 2 * kAttemptMax}));
          host.process->resume();
          break;
        default: break;
      }
    }
    store_.heal();
  }

  void check_ranks() const {
    for (std::size_t i = 0; i < kStepsOfRun; ++i) {
      std::vector<std::vector<store::RunMicroBatch>> slices;
      for (const auto& steps : got_) {
        EXPECT_EQ(steps.at(i)->step, store::Step(i));
        slices.push_back(steps[i]->micro_batches);
      }
      EXPECT_EQ(corpus_.problem(steps_[i], slices, got_[0][i]->token_width), "");
    }
  }

  /// All attempts at a batch, in all terms, are what it is when it is built by itself.
  void check_objects() {
    const auto uuid = store::decode_format(*store_.objects().find(store::kFormatKey)->bytes)->uuid;
    const auto options = corpus_.options();
    std::map<std::pair<Seq, store::Term>, std::uint64_t> attempts;
    const objstore::MemoryObjects::PageQuery all{
        .prefix = "d/", .start_after = {}, .last_shown = {}, .limit = SIZE_MAX};
    for (const objstore::ListedObject& listed : store_.objects().keys_with_prefix(all)) {
      const auto name = store::parse_data_key(listed.key);
      ASSERT_TRUE(name) << listed.key;
      if (name->kind != store::DataKind::kBatch) continue;
      if (++attempts[{name->seq, name->term}] > 1) ++spare_attempts_;
      const store::BatchOptions batch{.identity = {uuid, name->producer, name->term, name->seq},
                                      .token_width = construction::token_width_for(options->vocab),
                                      .origin = options->origin};
      const auto built = construction::build_steps(batch, jobs_.at(name->seq.value).steps).value();
      EXPECT_EQ(*store_.objects().find(listed.key)->bytes, objstore::concatenate(built.parts))
          << listed.key;
    }
  }

  const std::uint64_t seed_;
  NobodyWatches nobody_;
  Counters counters_;
  std::vector<std::unique_ptr<Host>> all_hosts_;
  SimWorld world_;
  SimStore store_;
  Corpus corpus_{{.seed = seed_, .records = 30, .pictures = false}};
  std::vector<PlannedStep> steps_;
  std::vector<ConstructionJob> jobs_;
  std::vector<Host*> hosts_;
  std::array<std::vector<client::StepPtr>, kSlices> got_;
  SimProcess* producer_ = nullptr;
  bool produced_ = false;
  std::uint64_t host_crashes_ = 0;
  std::uint64_t producer_crashes_ = 0;
  std::uint64_t spare_attempts_ = 0;
};

TEST(ConstructorCrash, EveryStepOnceAndEveryAttemptTheSame) {
  std::uint64_t host_crashes = 0;
  std::uint64_t producer_crashes = 0;
  std::uint64_t spare_attempts = 0;
  for (std::uint64_t seed = 0; seed < sim_seeds(); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    CrashWorld world(seed);
    world.run();
    host_crashes += world.host_crashes();
    producer_crashes += world.producer_crashes();
    spare_attempts += world.spare_attempts();
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(host_crashes, 0U);
  EXPECT_GT(producer_crashes, 0U);
  EXPECT_GT(spare_attempts, 0U);
}

}  // namespace
}  // namespace batchloom::simulator
