// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/reclaim_world_testing.h"

#include <algorithm>

#include "batchloom/base/check.h"
#include "batchloom/store/live_cursor.h"
#include "batchloom/store/pins.h"
#include "batchloom/store/trimmer.h"

namespace batchloom::store {
namespace {

void must(const Status& status) {
  BL_CHECK(status.is_ok(), status.to_string());
}

void put(objstore::ObjectStore& objects, const std::string& key) {
  must(objstore::put_bytes(objects, key, as_bytes("x"), objstore::PutCondition::none(), {})
           .status());
}

}  // namespace

ReclaimWorld::ReclaimWorld(std::uint64_t seed, const Safeguards& safeguards)
    : runtime_(seed), random_(seed) {
  must(init_stream({runtime_, memory_, counters_}, "test", {}).status());
  const StreamOptions options{.limits = tiny_limits(), .safeguards = safeguards};
  stream_ = Stream::open({runtime_, objects_, counters_}, options, {}).value();
  other_ = Stream::open({runtime_, memory_, counters_}, {.limits = tiny_limits()}, {}).value();
}

void ReclaimWorld::act(std::uint64_t times) {
  for (; times > 0; --times) {
    switch (random_.below(11)) {
      case 0: sessions_.erase(draw_producer()); break;
      case 1: leave_garbage(); break;
      case 2: pin_or_unpin(); break;
      case 3: move_cursor(); break;
      case 4: {
        ManifestReader reader(*other_);
        must(trim(*other_, reader, {}).status());
        break;
      }
      case 5: set_membership(draw_producer()); break;
      default: commit(draw_producer());
    }
  }
}

std::map<std::string, Bytes> ReclaimWorld::content() {
  std::map<std::string, Bytes> content;
  for (const std::string& key : keys("")) content[key] = memory_.get(key, {}, {}).value()->bytes;
  return content;
}

std::set<std::string> ReclaimWorld::keys(std::string_view prefix) {
  std::set<std::string> keys;
  const auto listing = memory_.list(prefix, "", {}).value();
  for (auto page = listing->next_page({}).value(); !page.empty();
       page = listing->next_page({}).value()) {
    for (const objstore::ListedObject& object : page) keys.insert(object.key);
  }
  return keys;
}

// Told from the definitions, object by object: a pass works the other way round.
std::set<std::string> ReclaimWorld::needed() {
  const HeadPtr newest_head = newest(*other_);
  const Head& head = newest_head->head;
  SegmentReader segments(*other_);
  std::set<std::string> needed;
  must(segments.for_each_ref(head, {}, [&](const SegmentRef& ref) {
    needed.insert(segment_key(ref.name()));
    return Status::ok();
  }));
  for (Step step = head.first_step; step < head.next_step; ++step) {
    needed.insert(data_key(segments.find(head, step, {}).value().object()));
  }
  for (const ProducerRow& row : head.producers) {
    if (row.state.ref) needed.insert(data_key(row.state_object()));
  }
  for (const MembershipRow& row : head.memberships) {
    if (row.ref) needed.insert(data_key(row.object()));
  }
  for (const std::string& key : keys("")) {
    if (const auto segment = parse_segment_key(key); segment && segment->slot > head.slot) {
      needed.insert(key);
    }
    if (const auto data = parse_data_key(key)) {
      const ProducerRow* row = head.find_producer(data->producer);
      if (row != nullptr && data->term == row->term && data->seq >= row->next_seq) {
        needed.insert(key);  // In flight.
      }
    }
  }
  return needed;
}

ProducerSession& ReclaimWorld::session(const std::string& producer) {
  auto& session = sessions_[producer];
  if (session == nullptr) {
    session = open_session(*other_, producer);
    next_[producer] = session->next_seq();
  }
  return *session;
}

// Uploads a pack or two, and mostly commits them.
void ReclaimWorld::commit(const std::string& producer) {
  ProducerSession& writer = session(producer);
  const auto state = random_.chance(500) ? "a large state" : "small";
  std::vector<PendingBatch> batches;
  for (std::uint64_t i = 1 + random_.below(2); i > 0; --i) {
    const auto steps = static_cast<std::uint32_t>(1 + random_.below(4));
    batches.push_back(upload_batch(writer, next_[producer] + batches.size(), state, steps));
  }
  if (random_.chance(200)) return;
  must(writer.commit(batches, {}).status());
  next_[producer] = next_[producer] + batches.size();
  if (random_.chance(100)) {
    must(writer.finish({}));
    sessions_.erase(producer);
  }
}

// From a step on that may come soon, so that some rows are replaced before they hold.
void ReclaimWorld::set_membership(const std::string& producer) {
  ProducerSession& writer = session(producer);
  const Step from_step = newest(*other_)->head.next_step + random_.below(3);
  const auto keys = random_.chance(700) ? "keys that stand beside" : "few";
  const auto set = writer.set_membership({.from_step = from_step,
                                          .digest = {.high = 0, .low = random_.next()},
                                          .keys = to_bytes(keys)},
                                         {});
  if (!set.is(ErrorKind::kExhausted)) must(set.status());
}

void ReclaimWorld::leave_garbage() {
  const HeadPtr head = newest(*other_);
  const Slot slot(std::max(head->head.slot.value + 1, std::uint64_t{3}) - random_.below(3));
  const Nonce nonce(random_.next());
  constexpr DataKind kKinds[] = {DataKind::kBatch, DataKind::kState, DataKind::kMembership};
  const DataName data{kKinds[random_.below(std::size(kKinds))], draw_producer(),
                      Term(1 + random_.below(slot.value)), Seq(random_.below(4)), nonce};
  const ProducerRow* row = head->head.find_producer(data.producer);
  if (row == nullptr || data.term <= row->term) put(memory_, data_key(data));
  put(memory_, segment_key({slot, 0, nonce}));
}

void ReclaimWorld::pin_or_unpin() {
  const std::string id(1, static_cast<char>('a' + random_.below(3)));
  if (random_.chance(400)) {
    must(unpin(*other_, "g", id, {}).status());
    return;
  }
  must(pin_step(*other_, {.group = "g", .id = id, .step = draw_step()}, {}).status());
}

void ReclaimWorld::move_cursor() {
  const auto cursor = read_live_cursor(*other_, "g", {}).value();
  if (!cursor || cursor->closed) {
    must(open_live_cursor(*other_, "g", draw_step(), {}).status());
  } else if (random_.chance(300)) {
    must(close_live_cursor(*other_, "g", {}));
  } else {
    must(report_live_cursor(*other_, "g", draw_step(), {}).status());
  }
}

Step ReclaimWorld::draw_step() {
  const HeadPtr head = newest(*other_);
  const Step first = head->head.first_step;
  return first + random_.below(head->head.next_step - first + 1);
}

std::string ReclaimWorld::draw_producer() {
  return std::string(1, static_cast<char>('p' + random_.below(3)));
}

}  // namespace batchloom::store
