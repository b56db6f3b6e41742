// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/codec_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "batchloom/base/check.h"
#include "batchloom/store/damage.h"
#include "batchloom/store/keys.h"
#include "batchloom/store/manifest_generated.h"

namespace batchloom::store {
namespace {

Status check_run_table(const Origin& origin, const fb::Entry& row) {
  const std::uint64_t size = row.run_table() == nullptr ? 0 : row.run_table()->size();
  const std::uint64_t size_max = run_table_max_bytes(row.ranks(), row.steps());
  if (size <= size_max) return Status::ok();
  return origin.corrupt(&row, fmt::format("a run table of {} bytes; {} ranks and {} steps allow {}",
                                          size, row.ranks(), row.steps(), size_max));
}

Status check_entry(const Origin& origin, Slot slot, const fb::Entry& row) {
  if (row.steps() == 0) return origin.corrupt(&row, "entry without steps");
  if (row.first_step() > UINT64_MAX - row.steps()) {
    return origin.corrupt(&row, fmt::format("entry of {} steps from step {} overflows", row.steps(),
                                            row.first_step()));
  }
  if (row.term() == 0 || row.term() > slot.value) {
    return origin.corrupt(&row, fmt::format("entry of term {} in slot {}", row.term(), slot.value));
  }
  return check_run_table(origin, row);
}

}  // namespace

Status Origin::corrupt(const void* row, std::string_view reason) const {
  return corrupt_at(part_, offset_of(row), reason);
}

Status Origin::at(const void* row, const Status& error) const {
  return {error.kind(), damage_text(part_, offset_of(row), error.message())};
}

Result<AlignedFrame> AlignedFrame::open(const FrameContext& context, ByteSpan object) {
  AlignedFrame aligned;
  BL_ASSIGN_OR_RETURN(aligned.frame_, decode_frame(context, object));
  const ByteSpan payload = aligned.frame_.payload;
  if (reinterpret_cast<std::uintptr_t>(payload.data()) % sizeof(std::uint64_t) != 0) {
    aligned.copy_.resize(payload.size() / sizeof(std::uint64_t) + 1);
    std::memcpy(aligned.copy_.data(), payload.data(), payload.size());
    aligned.frame_.payload = std::as_bytes(std::span(aligned.copy_)).first(payload.size());
  }
  return aligned;
}

Status check_reference(const FrameContext& context, ByteSpan object, std::uint32_t size_bytes,
                       std::uint32_t crc) {
  const std::uint32_t stated = stated_crc(object);
  if (object.size() == size_bytes && stated == crc) return Status::ok();
  return corrupt_at(
      context.place(), 0,
      fmt::format("another object: {} bytes with CRC-32C {:08x}, its reference says {} bytes with "
                  "{:08x}",
                  object.size(), stated, size_bytes, crc));
}

Encoded encode_crc_frame(ObjectKind kind, const StreamUuid& uuid, ByteSpan payload) {
  Encoded encoded{.bytes = encode_frame(kind, uuid, payload)};
  encoded.crc = stated_crc(encoded.bytes);
  return encoded;
}

flatbuffers::Offset<ByteVector> encode_bytes(flatbuffers::FlatBufferBuilder& builder,
                                             ByteSpan bytes) {
  if (bytes.empty()) return {};
  return builder.CreateVector(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
}

Bytes decode_bytes(const ByteVector* row) {
  if (row == nullptr) return {};
  const auto* data = reinterpret_cast<const std::byte*>(row->data());
  return {data, data + row->size()};
}

void NameTable::add(std::string_view name) {
  const auto place = std::lower_bound(names_.begin(), names_.end(), name);
  if (place == names_.end() || *place != name) names_.insert(place, name);
}

void NameTable::add(std::span<const Entry> entries) {
  for (const Entry& entry : entries) add(entry.producer);
}

std::uint32_t NameTable::index(std::string_view name) const {
  const auto place = std::lower_bound(names_.begin(), names_.end(), name);
  BL_CHECK(place != names_.end() && *place == name, "name was not added to the table");
  return static_cast<std::uint32_t>(place - names_.begin());
}

flatbuffers::Offset<StringVector> NameTable::encode(flatbuffers::FlatBufferBuilder& builder) const {
  std::vector<flatbuffers::Offset<flatbuffers::String>> strings;
  strings.reserve(names_.size());
  for (const std::string_view name : names_) {
    strings.push_back(builder.CreateString(name.data(), name.size()));
  }
  return builder.CreateVector(strings);
}

flatbuffers::Offset<TableVector<fb::Entry>> encode_entries(flatbuffers::FlatBufferBuilder& builder,
                                                           const NameTable& names,
                                                           std::span<const Entry> entries) {
  std::vector<flatbuffers::Offset<fb::Entry>> rows;
  rows.reserve(entries.size());
  for (const Entry& entry : entries) {
    const auto run_table = encode_bytes(builder, entry.run_table);
    rows.push_back(fb::CreateEntry(
        builder, entry.first_step.value, entry.term.value, entry.seq.value, entry.nonce.value,
        entry.size_bytes, entry.steps, entry.ranks, names.index(entry.producer), run_table));
  }
  return builder.CreateVector(rows);
}

flatbuffers::Offset<StructVector<fb::SegmentRef>> encode_refs(
    flatbuffers::FlatBufferBuilder& builder, std::span<const SegmentRef> refs) {
  std::vector<fb::SegmentRef> rows;
  rows.reserve(refs.size());
  for (const SegmentRef& ref : refs) {
    rows.emplace_back(ref.slot.value, ref.nonce.value, ref.first_step.value, ref.size_bytes,
                      ref.crc);
  }
  return builder.CreateVectorOfStructs(rows);
}

Result<DecodedNames> DecodedNames::decode(const Origin& origin, const StringVector& rows) {
  DecodedNames decoded;
  for (const flatbuffers::String* row : rows) {
    const std::string_view name(row->c_str(), row->size());
    if (!is_name(name)) return origin.corrupt(row, "not a producer's name");
    if (!decoded.names_.empty() && name <= decoded.names_.back()) {
      return origin.corrupt(
          row, fmt::format("name '{}' stands after '{}'", name, decoded.names_.back()));
    }
    decoded.names_.push_back(name);
  }
  return decoded;
}

Result<std::string_view> DecodedNames::at(const Origin& origin, const void* row,
                                          std::uint32_t index) const {
  if (index < names_.size()) return names_[index];
  return origin.corrupt(row, fmt::format("refers to name {} of {}", index, names_.size()));
}

Result<std::vector<Entry>> decode_entries(const Origin& origin, const DecodedNames& names,
                                          Slot slot, const TableVector<fb::Entry>& rows) {
  std::vector<Entry> entries;
  entries.reserve(rows.size());
  for (const fb::Entry* row : rows) {
    BL_RETURN_IF_ERROR(check_entry(origin, slot, *row));
    if (!entries.empty() && row->first_step() != entries.back().end_step().value) {
      return origin.corrupt(row, fmt::format("entry begins at step {}, the one before ends at {}",
                                             row->first_step(), entries.back().end_step().value));
    }
    BL_ASSIGN_OR_RETURN(const std::string_view producer, names.at(origin, row, row->producer()));
    Entry& entry = entries.emplace_back();
    entry.first_step = Step(row->first_step());
    entry.steps = row->steps();
    entry.producer = producer;
    entry.term = Term(row->term());
    entry.seq = Seq(row->seq());
    entry.nonce = Nonce(row->nonce());
    entry.size_bytes = row->size_bytes();
    entry.ranks = row->ranks();
    entry.run_table = decode_bytes(row->run_table());
  }
  return entries;
}

Result<std::vector<SegmentRef>> decode_refs(const Origin& origin, std::uint32_t level, Slot slot,
                                            const StructVector<fb::SegmentRef>& rows) {
  if (!is_aligned(rows)) return origin.corrupt(&rows, "segment references are not aligned");
  std::vector<SegmentRef> refs;
  refs.reserve(rows.size());
  for (const fb::SegmentRef* row : rows) {
    if (row->slot() == 0 || row->slot() > slot.value) {
      return origin.corrupt(row,
                            fmt::format("segment of slot {} in slot {}", row->slot(), slot.value));
    }
    if (!refs.empty() && row->first_step() <= refs.back().first_step.value) {
      return origin.corrupt(row, fmt::format("segment from step {} stands after one from step {}",
                                             row->first_step(), refs.back().first_step.value));
    }
    refs.push_back({.slot = Slot(row->slot()),
                    .level = level,
                    .nonce = Nonce(row->nonce()),
                    .first_step = Step(row->first_step()),
                    .size_bytes = row->size_bytes(),
                    .crc = row->crc()});
  }
  return refs;
}

}  // namespace batchloom::store
