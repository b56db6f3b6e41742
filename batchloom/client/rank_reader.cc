// SPDX-License-Identifier: Apache-2.0
#include "batchloom/client/rank_reader.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "batchloom/client/checkpoint_pins.h"
#include "batchloom/client/replan.h"
#include "batchloom/store/live_cursor.h"

namespace batchloom::client {
namespace {

constexpr std::chrono::milliseconds kFirstPause{50};
constexpr std::chrono::milliseconds kLongestPause{1000};
/// What opening may take at least, once the stream is there.
constexpr std::chrono::seconds kOpenTime{10};

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "an unnamed host";
}

/// An object store with a stream in it.
struct OpenedStream {
  std::unique_ptr<store::OpenStore> store;
  std::unique_ptr<store::Stream> stream;
};

Result<OpenedStream> open_now(Runtime& runtime, const store::StoreLocation& location,
                              const CallOptions& call) {
  OpenedStream opened;
  BL_ASSIGN_OR_RETURN(opened.store, store::OpenStore::open(location, runtime));
  BL_ASSIGN_OR_RETURN(opened.stream, opened.store->open_stream(call));
  return opened;
}

CallOptions with_time_to_open(Runtime& runtime, const CallOptions& call) {
  return {.deadline = std::max(call.deadline, runtime.now() + kOpenTime), .stop = call.stop};
}

/// Producers make streams, and jobs may begin before them.
Result<OpenedStream> wait_for_stream(Runtime& runtime, const RankReaderOptions& options,
                                     const CallOptions& call) {
  const store::StoreLocation& location = options.location;
  const Time began = runtime.now() - options.waited_before;
  for (Duration pause = kFirstPause;; pause = std::min<Duration>(2 * pause, kLongestPause)) {
    Result<OpenedStream> opened = open_now(runtime, location, with_time_to_open(runtime, call));
    if (!opened.is(ErrorKind::kNotFound)) return opened;
    if (runtime.now() >= call.deadline) {
      const auto waited = std::chrono::duration<double>(runtime.now() - began).count();
      return Status::not_found(fmt::format(
          "no stream at {} on host {} after {:.1f} s ({}): is its producer running, and is this a "
          "directory that all hosts share? Without one, use s3://",
          location.url, host_name(), waited, opened.status().message()));
    }
    BL_RETURN_IF_ERROR(runtime.sleep_until(
        {.deadline = std::min(call.deadline, runtime.now() + pause), .stop = call.stop}));
  }
}

Status check_options(const RankReaderOptions& options) {
  BL_RETURN_IF_ERROR(store::validate_name("group", options.group));
  if (options.rank.value >= options.topology.world_size()) {
    return Status::invalid(fmt::format("rank {} is none of {} ranks, which count from 0",
                                       options.rank.value, options.topology.world_size()));
  }
  if (options.resume && options.start) {
    return Status::invalid("give resume or start, not both: a state says where to begin");
  }
  return Status::ok();
}

bool is_first(const RankReaderOptions& options) {
  return options.rank == model::Rank(0);
}

/// What the group has left behind says that it has run before.
Status check_new_group(const store::Stream& stream, const RankReaderOptions& options,
                       const CallOptions& call) {
  const auto missing = [&](std::string_view left) {
    return Status::resume_missing(fmt::format(
        "group {} has run before: it has {}. Give the state of its checkpoint as resume, or "
        "start=0 to train on the same steps again, or another group for another job",
        options.group, left));
  };
  BL_ASSIGN_OR_RETURN(const auto pins, store::list_pins(stream, options.group, call));
  if (!pins.empty()) {
    const store::Pin& newest = pins.back();
    return missing(fmt::format("a pin {} at step {}", newest.name.id, newest.step.value));
  }
  BL_ASSIGN_OR_RETURN(const auto cursor, store::read_live_cursor(stream, options.group, call));
  if (!cursor || cursor->closed) return Status::ok();
  // Of a new job the first rank may have begun already; it is at most one step ahead of the others.
  if (!is_first(options) && cursor->cursor <= Step(1)) return Status::ok();
  return missing(fmt::format("an open cursor at step {}", cursor->cursor.value));
}

Status check_stream(const store::Stream& stream, const ConsumerState& state) {
  if (state.stream == stream.uuid()) return Status::ok();
  return Status::invalid(
      fmt::format("the state is of stream {}, and this is stream {}: is the checkpoint another "
                  "job's, or was the stream made anew?",
                  state.stream.to_string(), stream.uuid().to_string()));
}

/// The state to begin with; whether the caller may.
Result<ConsumerState> find_state(const store::Stream& stream, const RankReaderOptions& options,
                                 const CallOptions& call) {
  if (options.resume) {
    BL_RETURN_IF_ERROR(check_stream(stream, *options.resume));
    return *options.resume;
  }
  if (!options.start) BL_RETURN_IF_ERROR(check_new_group(stream, options, call));
  return ConsumerState{
      .stream = stream.uuid(), .next_step = options.start.value_or(Step(0)), .samples_hash = 0};
}

ConsumerOptions consumer_options(const RankReaderOptions& options, const ConsumerState& state) {
  ConsumerOptions consumer;
  consumer.rank = options.topology.hdp_rank(options.rank);
  consumer.ranks = options.topology.hdp_size();
  consumer.plan_step = plan_for(options.topology);
  consumer.topology = options.topology;
  if (!options.split_samples) {
    if (consumer.ranks > 1) consumer.admit = admit_whole_samples;  // One rank has all of each.
    consumer.ring_max = options.topology.extent(model::Axis::kCp);
  }
  consumer.start = state.next_step;
  consumer.samples_hash = state.samples_hash;
  consumer.last = state.last;
  // What a checkpoint has seen is there.
  if (options.resume) consumer.beyond_end = BeyondEnd::kRefuse;
  consumer.min_slot = options.min_slot;
  consumer.prefetch_bytes = options.prefetch_bytes;
  consumer.views_ahead = options.views_ahead;
  if (is_first(options) && options.report_cursor) consumer.report_group = options.group;
  consumer.report_steps = options.report_steps;
  return consumer;
}

}  // namespace

class RankReader::Impl {
 public:
  Impl(OpenedStream opened, const RankReaderOptions& options)
      : store_(std::move(opened.store)),
        stream_(std::move(opened.stream)),
        group_(options.group),
        feed_(*stream_),
        pool_(options.prefetch_bytes, store_->counters()) {}

  Status open(const RankReaderOptions& options, const CallOptions& call) {
    BL_ASSIGN_OR_RETURN(const ConsumerState state, find_state(*stream_, options, call));
    ConsumerOptions consumer = consumer_options(options, state);
    consumer.buffers = &pool_;
    BL_ASSIGN_OR_RETURN(consumer_, Consumer::open(feed_, consumer, call));
    return Status::ok();
  }

  Result<std::shared_ptr<const RankBatch>> next(const CallOptions& call) {
    BL_RETURN_IF_ERROR(refused_);
    BL_ASSIGN_OR_RETURN(StepPtr step, consumer_->next(call));
    if (step == nullptr) return std::shared_ptr<const RankBatch>();
    const Step number = step->step;
    Result<TrainerView> view = view_of(std::move(step));
    if (!view.is_ok()) {
      refused_ = view.status().with_context(fmt::format("step {}", number.value));
      return refused_;
    }
    return std::make_shared<const RankBatch>(
        RankBatch{.view = std::move(view).value(), .state = consumer_->state()});
  }

  Status seek(const ConsumerState& state, const CallOptions& call) {
    BL_RETURN_IF_ERROR(consumer_->seek(state, call));
    refused_ = Status::ok();
    return Status::ok();
  }

  Status pin(const ConsumerState& state, const std::string& name,
             const std::optional<std::uint64_t>& keep, const CallOptions& call) {
    BL_RETURN_IF_ERROR(check_stream(*stream_, state));
    const store::PinRequest request{.group = group_, .id = name, .step = state.next_step};
    if (!keep) return store::pin_step(*stream_, request, call).status();
    return pin_checkpoint(*stream_, request, *keep, call);
  }

  Result<std::size_t> unpin(const std::string& name, const CallOptions& call) {
    return store::unpin(*stream_, group_, name, call);
  }

  /// Of the step that the consumer gave last.
  Result<TrainerView> view_of(StepPtr step) {
    if (std::optional<TrainerView> made = consumer_->take_view()) return *std::move(made);
    return view_for_trainer(std::move(step), pool_);
  }

  Consumer& consumer() { return *consumer_; }
  const Counters& counters() const { return store_->counters(); }

 private:
  const std::unique_ptr<store::OpenStore> store_;
  const std::unique_ptr<store::Stream> stream_;
  const std::string group_;
  HeadFeed feed_;
  BufferPool pool_;
  std::unique_ptr<Consumer> consumer_;
  Status refused_;  // The step that next() took and cannot hand out.
};

Result<std::unique_ptr<RankReader>> RankReader::open(Runtime& runtime, RankReaderOptions options,
                                                     const CallOptions& call) {
  BL_RETURN_IF_ERROR(check_options(options));
  BL_ASSIGN_OR_RETURN(OpenedStream opened, wait_for_stream(runtime, options, call));
  auto impl = std::make_unique<Impl>(std::move(opened), options);
  BL_RETURN_IF_ERROR(impl->open(options, with_time_to_open(runtime, call)));
  return std::unique_ptr<RankReader>(new RankReader(std::move(impl)));
}

Result<RankStart> RankReader::find_start(Runtime& runtime, const RankReaderOptions& options,
                                         const CallOptions& call) {
  BL_RETURN_IF_ERROR(check_options(options));
  BL_ASSIGN_OR_RETURN(const OpenedStream opened, wait_for_stream(runtime, options, call));
  const CallOptions to_open = with_time_to_open(runtime, call);
  BL_ASSIGN_OR_RETURN(const ConsumerState state, find_state(*opened.stream, options, to_open));
  HeadFeed feed(*opened.stream);
  BL_ASSIGN_OR_RETURN(const store::HeadPtr head, feed.refresh(to_open));
  return RankStart{.slot = std::max(head->head.slot, options.min_slot), .state = state};
}

RankReader::RankReader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

RankReader::~RankReader() = default;

Result<std::shared_ptr<const RankBatch>> RankReader::next(const CallOptions& call) {
  return impl_->next(call);
}

ConsumerState RankReader::state() const {
  return impl_->consumer().state();
}

Slot RankReader::opened_with() const {
  return impl_->consumer().opened_with();
}

const std::vector<Step>& RankReader::skipped() const {
  return impl_->consumer().skipped();
}

Status RankReader::seek(const ConsumerState& state, const CallOptions& call) {
  return impl_->seek(state, call);
}

Status RankReader::close(const CallOptions& call) {
  return impl_->consumer().close(call);
}

Status RankReader::pin(const ConsumerState& state, const std::string& name,
                       const std::optional<std::uint64_t>& keep, const CallOptions& call) {
  return impl_->pin(state, name, keep, call);
}

Result<std::size_t> RankReader::unpin(const std::string& name, const CallOptions& call) {
  return impl_->unpin(name, call);
}

std::map<std::string, std::uint64_t> RankReader::counters() const {
  return impl_->counters().snapshot();
}

}  // namespace batchloom::client
