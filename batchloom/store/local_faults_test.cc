// SPDX-License-Identifier: Apache-2.0
// The whole store on a disk that fails: every fault at every call of FileOps, then a power cut (or
// only a killed process), then a new process. What was acknowledged is there, the stream is whole,
// and new sessions go on.
#include <gtest/gtest.h>

#include <cerrno>
#include <map>
#include <memory>
#include <optional>

#include "batchloom/objstore/local_store.h"
#include "batchloom/objstore/power_cut_testing.h"
#include "batchloom/store/reclaimer.h"
#include "batchloom/store/store_fixture_testing.h"

namespace batchloom::store {
namespace {

using objstore::FileFault;
using objstore::LocalStore;

/// A state that stands beside, and says after which batch.
std::string state_after(const std::string& producer, Seq seq) {
  return producer + " has made " + std::to_string(seq.value + 1) + " batches";
}

Limits small_limits() {
  Limits limits = tiny_limits();
  limits.tail_entries = 2;
  limits.slots_kept = 3;
  return limits;
}

/// A machine with a process on it that initialises, produces and reclaims; and what it was told.
class Machine {
 public:
  objstore::PowerCutFileOps& files() { return files_; }

  /// A process starts, as far as faults let it.
  Status start() {
    stop();
    BL_ASSIGN_OR_RETURN(objects_, LocalStore::create({.root = "/store"}, files_, runtime_, soon()));
    BL_RETURN_IF_ERROR(init_stream(deps(), "test", soon()).status());
    const StreamOptions options{.limits = small_limits(), .safeguards = {}};
    BL_ASSIGN_OR_RETURN(stream_, Stream::open(deps(), options, soon()));
    return Status::ok();
  }

  void stop() {
    producers_.clear();
    stream_.reset();
    objects_.reset();
  }

  /// Goes on after each error, as a careless program would.
  void run() {
    // After a failed sync names may be visible and yet never durable: only a restart of the machine
    // helps.
    const Status started = start();
    if (started.is(ErrorKind::kCorruption) || (!started.is_ok() && !start().is_ok())) return;
    produce("p", 1);
    produce("q", 2);
    produce("p", 3);
    reclaim();
    produce("q", 1);
    producers_["q"].session.reset();
    produce("q", 1);
    produce("p", 1);
    reclaim();
  }

  /// A new process finds all that was acknowledged, and can go on.
  void check() {
    files_.faults().clear();
    const Status started = start();
    ASSERT_TRUE(started.is_ok()) << started.to_string();
    std::map<std::string, std::uint64_t> found;
    check_content(found);
    for (const std::string name : {"p", "q"}) {
      const auto session = ProducerSession::open(*stream_, name, soon());
      ASSERT_TRUE(session.is_ok()) << session.status().to_string();
      const Seq next = (*session)->next_seq();
      EXPECT_EQ(next, Seq(found[name]));
      const std::string state = next == Seq(0) ? "" : state_after(name, next - 1);
      EXPECT_EQ(as_text((*session)->state()), state);
      const auto batch = upload_batch(**session, next, state_after(name, next));
      EXPECT_TRUE((*session)->commit(std::array{batch}, soon()).is_ok());
    }
    const auto reclaimed = Reclaimer(*stream_).run(soon());
    EXPECT_TRUE(reclaimed.is_ok()) << reclaimed.status().to_string();
    check_content(found);
  }

  std::size_t acknowledged() const { return batch_at_.size(); }

 private:
  struct Producer {
    std::unique_ptr<ProducerSession> session;
    Seq next;
    std::vector<PendingBatch> pending;
  };

  StreamDeps deps() { return {runtime_, *objects_, counters_}; }
  CallOptions soon() { return runtime_.within(std::chrono::milliseconds(300)); }

  void produce(const std::string& name, std::uint64_t count) {
    Producer& producer = producers_[name];
    if (producer.session == nullptr) {
      auto session = ProducerSession::open(*stream_, name, soon());
      if (!session.is_ok()) return;
      producer = {.session = std::move(*session), .next = {}, .pending = {}};
      producer.next = producer.session->next_seq();
    }
    for (; count > 0; --count, ++producer.next) {
      const std::string text = content_of(name, producer.next);
      const ByteSpan bytes = as_bytes(text);
      auto batch = producer.session->upload({.seq = producer.next, .run_table = {}},
                                            std::span(&bytes, 1), soon());
      if (!batch.is_ok()) break;
      batch->state_after = to_bytes(state_after(name, producer.next));
      producer.pending.push_back(*std::move(batch));
    }
    commit(name, producer);
  }

  void commit(const std::string& name, Producer& producer) {
    const auto receipt = producer.session->commit(producer.pending, soon());
    if (!receipt.is_ok()) return;
    EXPECT_EQ(receipt->committed + receipt->dropped, producer.pending.size());
    acknowledged_[name] = producer.next.value;
    if (receipt->dropped == 0) {
      Step step = receipt->next_step - producer.pending.size();
      for (const PendingBatch& batch : producer.pending) {
        batch_at_[step] = {name, batch.seq};
        ++step;
      }
    }
    producer.pending.clear();
  }

  void reclaim() { static_cast<void>(Reclaimer(*stream_).run(soon())); }

  /// Counts the batches of each producer.
  void check_content(std::map<std::string, std::uint64_t>& found) {
    const auto content = read_whole_stream(*stream_);
    ASSERT_TRUE(content.is_ok()) << content.status().to_string();
    found.clear();
    std::map<Step, std::pair<std::string, Seq>> all;
    for (const Entry& entry : content->entries) {
      all[entry.first_step] = {entry.producer, entry.seq};
      ++found[entry.producer];
    }
    for (const auto& [step, batch] : batch_at_) {
      EXPECT_TRUE(all.contains(step) && all[step] == batch) << "step " << step.value << " is lost";
    }
    for (const auto& [name, count] : acknowledged_) EXPECT_GE(found[name], count) << name;
  }

  objstore::PowerCutFileOps files_;
  SeededRuntime runtime_;
  Counters counters_;
  std::unique_ptr<LocalStore> objects_;
  std::unique_ptr<Stream> stream_;
  std::map<std::string, Producer> producers_;
  std::map<std::string, std::uint64_t> acknowledged_;     // Batches, by producer.
  std::map<Step, std::pair<std::string, Seq>> batch_at_;  // Of which the step is known.
};

/// False where the fault never came. No seed: the process is killed, the power stays.
bool fail_once(std::uint64_t index, FileFault fault, std::optional<std::uint64_t> seed) {
  Machine machine;
  machine.files().faults().fail_call(index, fault);
  machine.run();
  const bool met = machine.files().faults().calls() > index;
  machine.stop();
  if (seed) machine.files().power_cut(*seed);
  machine.check();
  return met;
}

TEST(LocalFaults, WithoutAFaultAllIsAcknowledged) {
  Machine machine;
  machine.run();
  EXPECT_EQ(machine.acknowledged(), 9u);
  machine.stop();
  machine.files().power_cut(1);
  machine.check();
}

struct NamedFault {
  std::string name;
  FileFault fault;
};

class LocalFaults : public testing::TestWithParam<NamedFault> {};

TEST_P(LocalFaults, LoseNothingThatWasAcknowledged) {
  constexpr std::uint64_t kCutsPerCall = 2;
  const FileFault fault = GetParam().fault;
  std::uint64_t index = 0;
  for (bool met = true; met && !HasFailure(); index += objstore::fault_stride()) {
    SCOPED_TRACE("fault at call " + std::to_string(index));
    if (!fault.power_off) met = fail_once(index, fault, std::nullopt);
    for (std::uint64_t cut = 0; cut < kCutsPerCall; ++cut) {
      SCOPED_TRACE("cut " + std::to_string(cut));
      met = fail_once(index, fault, index * kCutsPerCall + cut);
    }
  }
  EXPECT_GT(index, 300u) << "the workload should make many calls";
}

INSTANTIATE_TEST_SUITE_P(EveryFault, LocalFaults,
                         testing::Values(NamedFault{"DiskFull", {.error = ENOSPC}},
                                         NamedFault{"NoPermission", {.error = EACCES}},
                                         NamedFault{"IoError", {.error = EIO}},
                                         NamedFault{"IoErrorWithEffect",
                                                    {.error = EIO, .takes_effect = true}},
                                         NamedFault{"PowerOff", {.error = EIO, .power_off = true}}),
                         [](const auto& fault) { return fault.param.name; });

}  // namespace
}  // namespace batchloom::store
