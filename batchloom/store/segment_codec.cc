// SPDX-License-Identifier: Apache-2.0
// Segments. What a decoded segment promises, beyond the rows' own rules (codec_rows.cc):
//
//   1. Size, CRC, level and first step are those of the reference that led to it.
//   2. Level 0 holds entries that fill [first_step, end_step) densely; a higher level holds
//   segments
//      of the level below that begin at ever later steps, the first at first_step, all before
//      end_step. Neither is empty.
#include <fmt/format.h>

#include "batchloom/store/codec.h"
#include "batchloom/store/codec_rows.h"
#include "batchloom/store/manifest_generated.h"

namespace batchloom::store {
namespace {

Status check_header(const Origin& origin, const SegmentRef& ref, const fb::Segment& table) {
  if (ref.level >= kMaxLevels || table.level() != ref.level) {
    return origin.corrupt(&table, fmt::format("is of level {}, its reference says {} (below {})",
                                              table.level(), ref.level, kMaxLevels));
  }
  if (table.first_step() != ref.first_step.value) {
    return origin.corrupt(&table, fmt::format("begins at step {}, its reference says {}",
                                              table.first_step(), ref.first_step.value));
  }
  const bool has_entries = table.entries()->size() != 0;
  const bool has_children = table.children()->size() != 0;
  if (has_entries != (ref.level == 0) || has_children != (ref.level != 0)) {
    return origin.corrupt(&table, fmt::format("level {} with {} entries and {} children", ref.level,
                                              table.entries()->size(), table.children()->size()));
  }
  return Status::ok();
}

/// What the rows cover against what the segment says. Precondition: rows of the right sort.
Status check_steps(const Origin& origin, const fb::Segment& table, const Segment& segment) {
  const bool leaf = segment.level == 0;
  const Step first =
      leaf ? segment.entries.front().first_step : segment.children.front().first_step;
  if (first != segment.first_step) {
    return origin.corrupt(&table, fmt::format("begins at step {}, its first row at {}",
                                              segment.first_step.value, first.value));
  }
  if (leaf && segment.entries.back().end_step() != segment.end_step) {
    return origin.corrupt(
        &table, fmt::format("ends at step {}, its last entry at {}", segment.end_step.value,
                            segment.entries.back().end_step().value));
  }
  if (!leaf && segment.children.back().first_step >= segment.end_step) {
    return origin.corrupt(
        &table, fmt::format("ends at step {}, its last segment begins at {}",
                            segment.end_step.value, segment.children.back().first_step.value));
  }
  return Status::ok();
}

}  // namespace

Encoded encode_segment(const StreamUuid& uuid, const Segment& segment) {
  flatbuffers::FlatBufferBuilder builder(std::size_t{32} << 10);
  builder.ForceDefaults(true);
  NameTable names;
  names.add(segment.entries);
  const auto entries = encode_entries(builder, names, segment.entries);
  const auto children = encode_refs(builder, segment.children);
  const auto encoded_names = names.encode(builder);
  return finish_frame(ObjectKind::kSegment, uuid, builder,
                      fb::CreateSegment(builder, segment.level, segment.first_step.value,
                                        segment.end_step.value, encoded_names, entries, children));
}

Result<Segment> decode_segment(const StreamUuid& uuid, const SegmentRef& ref, ByteSpan object) {
  const std::string key = segment_key(ref.name());
  const FrameContext context{.key = key, .kind = ObjectKind::kSegment, .uuid = &uuid};
  BL_ASSIGN_OR_RETURN(const AlignedFrame frame, AlignedFrame::open(context, object));
  BL_RETURN_IF_ERROR(check_reference(context, object, ref.size_bytes, ref.crc));
  BL_ASSIGN_OR_RETURN(const auto* table, verified_root<fb::Segment>(context, frame.payload()));

  const Origin origin(context, frame.payload().data());
  BL_RETURN_IF_ERROR(check_header(origin, ref, *table));
  Segment segment{.level = table->level(),
                  .first_step = Step(table->first_step()),
                  .end_step = Step(table->end_step()),
                  .entries = {},
                  .children = {}};
  BL_ASSIGN_OR_RETURN(const DecodedNames names, DecodedNames::decode(origin, *table->names()));
  BL_ASSIGN_OR_RETURN(segment.entries, decode_entries(origin, names, ref.slot, *table->entries()));
  if (segment.level > 0) {
    BL_ASSIGN_OR_RETURN(segment.children,
                        decode_refs(origin, segment.level - 1, ref.slot, *table->children()));
  }
  BL_RETURN_IF_ERROR(check_steps(origin, *table, segment));
  return segment;
}

}  // namespace batchloom::store
