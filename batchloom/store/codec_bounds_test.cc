// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "batchloom/store/codec.h"
#include "batchloom/store/store_testing.h"

namespace batchloom::store {
namespace {

std::size_t bound_of(const Head& head) {
  std::size_t bound = kHeadFixedBytes;
  for (const Entry& entry : head.tail) bound += encoded_bound(entry);
  for (const auto& refs : head.segments) {
    for (const SegmentRef& ref : refs) bound += encoded_bound(ref);
  }
  for (const ProducerRow& row : head.producers) {
    bound += encoded_bound(row) + row.state.inline_bytes.size();
  }
  for (const TopologyRow& row : head.topologies) bound += encoded_bound(row);
  for (const MembershipRow& row : head.memberships) bound += encoded_bound(row);
  for (const Step step : head.skipped) bound += encoded_bound(step);
  return bound;
}

/// What the rows of a head look like. All names are distinct.
struct Shape {
  std::size_t rows = 0;  ///< Of entries, and of producers.
  std::size_t name_bytes = 7;
  std::size_t table_bytes = 0;   ///< Run tables have 0 to this many, one after the other.
  std::size_t inline_every = 0;  ///< Every n-th producer row has an inline state ...
  std::size_t ref_every = 0;     ///< ... and every n-th other one a reference; 0: none has.
};

std::string long_name(char kind, std::size_t number, std::size_t name_bytes) {
  const std::string digits = std::to_string(1000 + number);
  return kind + std::string(name_bytes - digits.size() - 1, 'x') + digits;
}

Head shaped_head(const Shape& shape) {
  Head head;
  head.slot = Slot(9);
  head.writer = {.producer = std::string(63, 'w'), .term = Term(1)};
  head.segments.resize(kMaxLevels);
  head.trim_intent = TrimIntent{.step = Step(1), .slot = Slot(9)};
  head.next_step = Step(shape.rows);
  for (std::size_t i = 0; i < shape.rows; ++i) {
    ProducerRow& row = head.producers.emplace_back();
    row.producer = long_name('p', i, shape.name_bytes);
    row.term = Term(1);
    row.last_slot = Slot(1);
    if (shape.inline_every != 0 && i % shape.inline_every == 0) {
      row.state.inline_bytes.resize(1 + i % 13);
    } else if (shape.ref_every != 0 && i % shape.ref_every == 0) {
      row.state.ref.emplace().term = Term(1);
    }
    Entry& entry = head.tail.emplace_back();
    entry.first_step = Step(i);
    entry.producer = long_name('e', i, shape.name_bytes);
    entry.term = Term(1);
    entry.ranks = 100;
    entry.run_table.resize(i % (shape.table_bytes + 1));
  }
  return head;
}

void expect_bounded(const Shape& shape) {
  const Head head = shaped_head(shape);
  const Bytes object = encode_head(kTestUuid, head).bytes;
  EXPECT_TRUE(decode_head(kTestUuid, head.slot, object).is_ok());
  EXPECT_LE(object.size(), bound_of(head))
      << shape.rows << " rows, names of " << shape.name_bytes << ", tables of " << shape.table_bytes
      << ", inline every " << shape.inline_every << ", by reference every " << shape.ref_every;
}

RC_GTEST_PROP(EncodedBound, HoldsForEveryHead, ()) {
  const Head head = *arbitrary_head();
  RC_ASSERT(encode_head(kTestUuid, head).bytes.size() <= bound_of(head));
}

/// Rows in plenty, so that half a word too little per row would show.
TEST(EncodedBound, HoldsForEveryShape) {
  for (const std::size_t rows : {1U, 2U, 30U, 301U}) {
    for (const std::size_t name_bytes : {5U, 6U, 7U, 8U, 63U}) {
      for (const std::size_t table_bytes : {0U, 1U, 28U}) {
        for (const std::size_t inline_every : {0U, 1U, 2U}) {
          for (const std::size_t ref_every : {0U, 1U}) {
            expect_bounded({rows, name_bytes, table_bytes, inline_every, ref_every});
          }
        }
      }
    }
  }
}

TEST(EncodedBound, HoldsForManySegments) {
  Head head = shaped_head({});
  head.segments.assign(kMaxLevels, std::vector<SegmentRef>(100));
  EXPECT_LE(encode_head(kTestUuid, head).bytes.size(), bound_of(head));
}

TEST(EncodedBound, HoldsForManyEvents) {
  for (const std::size_t rows : {1U, 2U, 30U, 301U}) {
    for (std::size_t axes_bytes = 4; axes_bytes < 29; ++axes_bytes) {
      Head head = shaped_head({});
      head.topologies.assign(rows, {Step(0), 1, std::string(axes_bytes, 'x')});
      EXPECT_LE(encode_head(kTestUuid, head).bytes.size(), bound_of(head)) << axes_bytes;
      head.skipped.resize(10 * rows);
      EXPECT_LE(encode_head(kTestUuid, head).bytes.size(), bound_of(head)) << axes_bytes;
    }
  }
}

MembershipRow membership_of(std::size_t name_bytes, std::size_t inline_bytes) {
  return {.from_step = {},
          .digest = {},
          .producer = std::string(name_bytes, 'm'),
          .term = Term(1),
          .inline_keys = Bytes(inline_bytes),
          .ref = {}};
}

TEST(EncodedBound, HoldsForManyMemberships) {
  for (const std::size_t rows : {1U, 2U, 30U}) {
    for (std::size_t name_bytes = 1; name_bytes < 10; ++name_bytes) {
      for (std::size_t inline_bytes = 0; inline_bytes < 10; ++inline_bytes) {
        Head head = shaped_head({});
        head.memberships.assign(rows, membership_of(name_bytes, inline_bytes));
        EXPECT_LE(encode_head(kTestUuid, head).bytes.size(), bound_of(head));
        for (std::size_t i = 0; i < rows; i += 2) {
          head.memberships[i].inline_keys.clear();
          head.memberships[i].ref.emplace();
        }
        EXPECT_LE(encode_head(kTestUuid, head).bytes.size(), bound_of(head));
      }
    }
  }
}

/// What the bounds say about a head's rows, against what they take.
double looseness(const Head& head) {
  Head bare = head;
  bare.tail.clear();
  bare.producers.clear();
  bare.topologies.clear();
  bare.memberships.clear();
  bare.skipped.clear();
  bare.first_step = bare.next_step;
  const std::size_t growth =
      encode_head(kTestUuid, head).bytes.size() - encode_head(kTestUuid, bare).bytes.size();
  return static_cast<double>(bound_of(head) - bound_of(bare)) / static_cast<double>(growth);
}

TEST(EncodedBound, IsCloseForTypicalRows) {
  Head head = shaped_head({});
  for (std::uint64_t i = 0; i < 250; ++i) {
    Entry& entry = head.tail.emplace_back();
    entry.first_step = Step(i);
    entry.producer = "prod-" + std::to_string(i % 8);
    entry.ranks = 1024;
  }
  head.next_step = Step(250);
  EXPECT_LE(looseness(head), 1.3);
  for (Entry& entry : head.tail) {
    entry.ranks = 8;
    entry.run_table.resize(8 * 20);
  }
  EXPECT_LE(looseness(head), 1.15);

  head = shaped_head({});
  for (std::size_t i = 0; i < 64; ++i) {
    ProducerRow& row = head.producers.emplace_back();
    row.producer = "prod-" + std::to_string(10 + i);
    row.state.ref.emplace();
  }
  EXPECT_LE(looseness(head), 1.1);

  head = shaped_head({});
  head.topologies.assign(30, {Step(0), 8, "dp=8 cp=1 tp=4"});
  EXPECT_LE(looseness(head), 1.1);
  head.topologies.clear();
  head.skipped.resize(100);
  EXPECT_LE(looseness(head), 1.01);
  head.skipped.clear();
  head.memberships.assign(8, membership_of(4, 200));
  EXPECT_LE(looseness(head), 1.15);
}

TEST(EncodedBound, FixedPartHasRoomForFieldsToCome) {
  const Head head = shaped_head({});
  EXPECT_LE(encode_head(kTestUuid, head).bytes.size(), kHeadFixedBytes - 256);
}

}  // namespace
}  // namespace batchloom::store
