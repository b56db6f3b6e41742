// SPDX-License-Identifier: Apache-2.0
// Values for the tests of the store: random ones that obey every rule a decoder checks, and small
// fixed ones. A test that uses the generators links rapidcheck.
#pragma once

#include <rapidcheck/Gen.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "batchloom/base/bytes.h"
#include "batchloom/model/topology.h"
#include "batchloom/store/codec.h"
#include "batchloom/store/head.h"
#include "batchloom/store/ids.h"
#include "batchloom/store/keys.h"

namespace batchloom::store {

/// A name of a producer, group or pin; now and then of the full 63 bytes.
rc::Gen<std::string> arbitrary_name();
/// A name under d/ of any kind, with numbers of any size.
rc::Gen<DataName> arbitrary_data_name();
/// A head with up to 8 producers, 5 levels and 20 entries, of packs and with run tables or not, 4
/// topologies, 3 memberships and 5 skipped steps. It may have ended, and may be about to be
/// trimmed.
rc::Gen<Head> arbitrary_head();
/// A segment of `level` as it may stand in an object written for `slot`. Precondition: slot >= 1.
rc::Gen<Segment> arbitrary_segment(std::uint32_t level, Slot slot);

/// The stream that `number` stands for; the same one in every process.
StreamUuid test_uuid(std::uint64_t number);
inline const StreamUuid kTestUuid = test_uuid(1);
/// Such as "dp=2,cp=4". Precondition: it is one.
model::Topology topology_of(std::string_view axes);
/// A small head of slot 9 in which every field is set: two producers, one with a state inline and
/// one by reference, two levels, two entries, two topologies, two memberships, two skipped steps.
Head small_head();
/// A small segment of level 0, fit for slot 9: steps 10 to 15 in two entries.
Segment small_segment();
/// How a head of `slot` would refer to `segment` after it was encoded.
SegmentRef reference_to(const Segment& segment, const Encoded& encoded, Slot slot);

}  // namespace batchloom::store
