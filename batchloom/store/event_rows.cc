// SPDX-License-Identifier: Apache-2.0
// The rows of a head that events and trimming write (codec_rows.h).
#include <fmt/format.h>

#include "batchloom/model/topology.h"
#include "batchloom/store/codec_rows.h"
#include "batchloom/store/limits.h"
#include "batchloom/store/manifest_generated.h"

namespace batchloom::store {
namespace {

/// That the axes are what a topology of so many HDP ranks is written as.
Status check_axes(const Origin& origin, const fb::TopologyRow& row) {
  const std::string_view axes(row.axes()->c_str(), row.axes()->size());
  const auto topology = model::Topology::parse(axes);
  if (!topology.is_ok()) return origin.corrupt(&row, topology.status().message());
  if (to_string(*topology) != axes) {
    return origin.corrupt(&row,
                          fmt::format("axes '{}' are written '{}'", axes, to_string(*topology)));
  }
  if (topology->hdp_size() == row.ranks()) return Status::ok();
  return origin.corrupt(&row, fmt::format("axes '{}' have {} HDP ranks, the row says {}", axes,
                                          topology->hdp_size(), row.ranks()));
}

Status check_membership(const Origin& origin, Slot slot, const fb::MembershipRow& row) {
  const auto refuse = [&](std::string_view what) {
    return origin.corrupt(&row, fmt::format("membership from step {} {}", row.from_step(), what));
  };
  if (row.term() == 0 || row.term() > slot.value) {
    return refuse(fmt::format("of term {} in slot {}", row.term(), slot.value));
  }
  const fb::MembershipRef* ref = row.keys_ref();
  if (ref == nullptr) return Status::ok();
  if (row.inline_keys() != nullptr && row.inline_keys()->size() > 0) {
    return refuse("has its keys inline and by reference");
  }
  if (ref->size_bytes() >= kFrameBytes && ref->size_bytes() <= kFrameBytes + kMembershipMaxBytes) {
    return Status::ok();
  }
  return refuse(fmt::format("has its keys in {} bytes; {} to {} are possible", ref->size_bytes(),
                            kFrameBytes, kFrameBytes + kMembershipMaxBytes));
}

}  // namespace

flatbuffers::Offset<TableVector<fb::TopologyRow>> encode_topologies(
    flatbuffers::FlatBufferBuilder& builder, std::span<const TopologyRow> topologies) {
  std::vector<flatbuffers::Offset<fb::TopologyRow>> rows;
  rows.reserve(topologies.size());
  for (const TopologyRow& row : topologies) {
    const auto axes = builder.CreateString(row.axes);
    rows.push_back(fb::CreateTopologyRow(builder, row.from_step.value, row.ranks, axes));
  }
  return builder.CreateVector(rows);
}

flatbuffers::Offset<TableVector<fb::MembershipRow>> encode_memberships(
    flatbuffers::FlatBufferBuilder& builder, const NameTable& names,
    std::span<const MembershipRow> memberships) {
  std::vector<flatbuffers::Offset<fb::MembershipRow>> rows;
  rows.reserve(memberships.size());
  for (const MembershipRow& membership : memberships) {
    const auto inline_keys = encode_bytes(builder, membership.inline_keys);
    const fb::MembershipDigest digest(membership.digest.high, membership.digest.low);
    fb::MembershipRowBuilder row(builder);
    if (membership.ref) {
      const MembershipRef& ref = *membership.ref;
      const fb::MembershipRef keys_ref(ref.seq.value, ref.nonce.value, ref.size_bytes, ref.crc);
      row.add_keys_ref(&keys_ref);
    }
    row.add_from_step(membership.from_step.value);
    row.add_digest(&digest);
    row.add_term(membership.term.value);
    row.add_producer(names.index(membership.producer));
    row.add_inline_keys(inline_keys);
    rows.push_back(row.Finish());
  }
  return builder.CreateVector(rows);
}

flatbuffers::Offset<StepVector> encode_steps(flatbuffers::FlatBufferBuilder& builder,
                                             std::span<const Step> steps) {
  std::vector<std::uint64_t> rows;
  rows.reserve(steps.size());
  for (const Step step : steps) rows.push_back(step.value);
  return builder.CreateVector(rows);
}

Result<std::vector<TopologyRow>> decode_topologies(const Origin& origin, Step next_step,
                                                   const TableVector<fb::TopologyRow>& rows) {
  std::vector<TopologyRow> topologies;
  topologies.reserve(rows.size());
  for (const fb::TopologyRow* row : rows) {
    if (row->from_step() > next_step.value) {
      return origin.corrupt(row, fmt::format("topology from step {}, next step is {}",
                                             row->from_step(), next_step.value));
    }
    if (!topologies.empty() && row->from_step() <= topologies.back().from_step.value) {
      return origin.corrupt(row, fmt::format("topology from step {} stands after one from step {}",
                                             row->from_step(), topologies.back().from_step.value));
    }
    BL_RETURN_IF_ERROR(check_axes(origin, *row));
    topologies.push_back(
        {.from_step = Step(row->from_step()), .ranks = row->ranks(), .axes = row->axes()->str()});
  }
  return topologies;
}

Result<std::vector<Step>> decode_skipped(const Origin& origin, Step first_step, Step next_step,
                                         const StepVector& rows) {
  if (!is_aligned(rows)) return origin.corrupt(&rows, "skipped steps are not aligned");
  std::vector<Step> steps;
  steps.reserve(rows.size());
  for (const std::uint64_t row : rows) {
    if (row < first_step.value || row >= next_step.value) {
      return origin.corrupt(&rows, fmt::format("step {} is skipped, the stream holds {} to {}", row,
                                               first_step.value, next_step.value));
    }
    if (!steps.empty() && row <= steps.back().value) {
      return origin.corrupt(
          &rows, fmt::format("skipped step {} stands after {}", row, steps.back().value));
    }
    steps.emplace_back(row);
  }
  return steps;
}

Result<std::vector<MembershipRow>> decode_memberships(const Origin& origin,
                                                      const DecodedNames& names, Slot slot,
                                                      const TableVector<fb::MembershipRow>& rows) {
  std::vector<MembershipRow> memberships;
  memberships.reserve(rows.size());
  for (const fb::MembershipRow* row : rows) {
    if (!memberships.empty() && row->from_step() <= memberships.back().from_step.value) {
      return origin.corrupt(row,
                            fmt::format("membership from step {} stands after one from step {}",
                                        row->from_step(), memberships.back().from_step.value));
    }
    BL_RETURN_IF_ERROR(check_membership(origin, slot, *row));
    BL_ASSIGN_OR_RETURN(const std::string_view producer, names.at(origin, row, row->producer()));
    MembershipRow& membership = memberships.emplace_back();
    membership.from_step = Step(row->from_step());
    membership.digest = {.high = row->digest()->high(), .low = row->digest()->low()};
    membership.producer = producer;
    membership.term = Term(row->term());
    membership.inline_keys = decode_bytes(row->inline_keys());
    if (const fb::MembershipRef* ref = row->keys_ref()) {
      membership.ref = MembershipRef{.seq = Seq(ref->seq()),
                                     .nonce = Nonce(ref->nonce()),
                                     .size_bytes = ref->size_bytes(),
                                     .crc = ref->crc()};
    }
  }
  return memberships;
}

Result<std::optional<TrimIntent>> decode_trim_intent(const Origin& origin, Slot slot,
                                                     const fb::TrimIntent* row) {
  if (row == nullptr) return std::optional<TrimIntent>();
  // Its step has no bound. F is what pins keep, and a pin may name a step that is not committed
  // yet. Cut to next_step, the intent would not warn whoever pins a step between the two, which
  // may be trimmed once it is committed.
  if (row->slot() < 2 || row->slot() > slot.value) {
    return origin.corrupt(
        row, fmt::format("intent of slot {} to trim, in slot {}", row->slot(), slot.value));
  }
  return std::optional(TrimIntent{.step = Step(row->step()), .slot = Slot(row->slot())});
}

}  // namespace batchloom::store
