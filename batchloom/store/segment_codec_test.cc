// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <functional>
#include <ostream>

#include "batchloom/store/codec.h"
#include "batchloom/store/store_testing.h"

namespace batchloom::store {
namespace {

/// Level 1: steps 10 to 29 in two segments of level 0.
Segment parent_segment() {
  return {.level = 1,
          .first_step = Step(10),
          .end_step = Step(30),
          .entries = {},
          .children = {{Slot(7), 0, Nonce(5), Step(10), 4000, 31},
                       {Slot(8), 0, Nonce(6), Step(16), 4001, 32}}};
}

TEST(SegmentCodec, ReadsSmallSegmentsBack) {
  for (const Segment& segment : {small_segment(), parent_segment()}) {
    const Encoded encoded = encode_segment(kTestUuid, segment);
    const auto decoded =
        decode_segment(kTestUuid, reference_to(segment, encoded, Slot(9)), encoded.bytes);
    ASSERT_TRUE(decoded.is_ok()) << decoded.status().to_string();
    EXPECT_EQ(*decoded, segment);
  }
}

/// A segment, or the reference to it, that breaks one rule, and what the complaint says.
struct BrokenSegment {
  const char* name;
  Segment (*base)();
  std::function<void(Segment&)> breaks;
  std::function<void(SegmentRef&)> misleads;
  const char* reason;

  friend void PrintTo(const BrokenSegment& broken, std::ostream* out) { *out << broken.name; }
};

class SegmentCodecRules : public testing::TestWithParam<BrokenSegment> {};

TEST_P(SegmentCodecRules, AreChecked) {
  Segment segment = GetParam().base();
  if (GetParam().breaks) GetParam().breaks(segment);
  const Encoded encoded = encode_segment(kTestUuid, segment);
  SegmentRef ref = reference_to(segment, encoded, Slot(9));
  if (GetParam().misleads) GetParam().misleads(ref);

  const Status status = decode_segment(kTestUuid, ref, encoded.bytes).status();
  EXPECT_TRUE(status.is(ErrorKind::kCorruption)) << status.to_string();
  EXPECT_EQ(status.message().find("s/"), 0U) << status.message();
  EXPECT_NE(status.message().find(": at byte "), std::string::npos) << status.message();
  EXPECT_NE(status.message().find(GetParam().reason), std::string::npos) << status.message();
}

const BrokenSegment kBrokenSegments[] = {
    {"RefSize", small_segment, {}, [](SegmentRef& r) { ++r.size_bytes; }, "another object"},
    {"RefCrc", small_segment, {}, [](SegmentRef& r) { ++r.crc; }, "another object"},
    {"RefLevel",
     parent_segment,
     {},
     [](SegmentRef& r) { r.level = 2; },
     "is of level 1, its reference says 2"},
    {"RefFirstStep",
     small_segment,
     {},
     [](SegmentRef& r) { ++r.first_step; },
     "begins at step 10, its reference says 11"},
    {"LevelTooHigh",
     parent_segment,
     [](Segment& s) { s.level = kMaxLevels; },
     {},
     "is of level 16"},
    {"EmptyLeaf",
     small_segment,
     [](Segment& s) { s.entries.clear(); },
     {},
     "level 0 with 0 entries and 0 children"},
    {"EmptyParent",
     parent_segment,
     [](Segment& s) { s.children.clear(); },
     {},
     "level 1 with 0 entries and 0 children"},
    {"LeafWithChildren",
     small_segment,
     [](Segment& s) { s.children = parent_segment().children; },
     {},
     "level 0 with 2 entries and 2"},
    {"ParentWithEntries",
     parent_segment,
     [](Segment& s) { s.entries = small_segment().entries; },
     {},
     "level 1 with 2 entries and 2"},
    {"LeafBeginsLate",
     small_segment,
     [](Segment& s) { s.first_step = Step(9); },
     {},
     "begins at step 9, its first row at 10"},
    {"ParentBeginsLate",
     parent_segment,
     [](Segment& s) { s.first_step = Step(9); },
     {},
     "begins at step 9, its first row at 10"},
    {"LeafEnd",
     small_segment,
     [](Segment& s) { s.end_step = Step(17); },
     {},
     "ends at step 17, its last entry at 16"},
    {"ParentEnd",
     parent_segment,
     [](Segment& s) { s.end_step = Step(16); },
     {},
     "ends at step 16, its last segment begins at 16"},
    {"Gap",
     small_segment,
     [](Segment& s) { ++s.entries[1].first_step; },
     {},
     "entry begins at step 13, the one before ends at 12"},
    {"ChildOrder",
     parent_segment,
     [](Segment& s) { std::swap(s.children[0], s.children[1]); },
     {},
     "segment from step 10 stands after one from step 16"},
    {"ChildSlot",
     parent_segment,
     [](Segment& s) { s.children[1].slot = Slot(10); },
     {},
     "segment of slot 10 in slot 9"},
    {"EntryTerm",
     small_segment,
     [](Segment& s) { s.entries[0].term = Term(10); },
     {},
     "entry of term 10 in slot 9"},
    {"EntryName",
     small_segment,
     [](Segment& s) { s.entries[0].producer = ""; },
     {},
     "not a producer's name"},
    {"RunTable",
     small_segment,
     [](Segment& s) { s.entries[0].ranks = 65; },
     {},
     "a run table of 72 bytes; 65 ranks and 2 steps allow 0"},
};

INSTANTIATE_TEST_SUITE_P(All, SegmentCodecRules, testing::ValuesIn(kBrokenSegments),
                         [](const auto& test) { return std::string(test.param.name); });

RC_GTEST_PROP(SegmentCodec, ReadsEverySegmentBack, ()) {
  const auto level = *rc::gen::inRange<std::uint32_t>(0, kMaxLevels);
  const Segment segment = *arbitrary_segment(level, Slot(1000));
  const Encoded encoded = encode_segment(kTestUuid, segment);
  const auto decoded =
      decode_segment(kTestUuid, reference_to(segment, encoded, Slot(1000)), encoded.bytes);
  RC_ASSERT(decoded.is_ok());
  RC_ASSERT(*decoded == segment);
  RC_ASSERT(encode_segment(kTestUuid, *decoded).bytes == encoded.bytes);
}

}  // namespace
}  // namespace batchloom::store
