// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/membership.h"

#include <fmt/format.h>

#include "batchloom/store/manifest_reader.h"
#include "batchloom/store/read_object.h"

namespace batchloom::store {
namespace {

Result<MembershipRow> row_at(const Head& head, Step step) {
  if (step < head.memberships_kept_from()) {
    return Status::not_found(fmt::format("step {} was trimmed: the stream begins at step {}",
                                         step.value, head.first_step.value));
  }
  if (const MembershipRow* row = head.membership_at(step)) return *row;
  return Status::not_found(fmt::format("slot {} has no membership keys for step {}: none were set",
                                       head.slot.value, step.value));
}

/// nullopt where the object is missing.
Result<std::optional<Bytes>> read_keys(const Stream& stream, const MembershipRow& row,
                                       const CallOptions& call) {
  if (!row.ref) return std::optional(row.inline_keys);
  const std::string key = data_key(row.object());
  return read_object(stream.objects(), {key, row.ref->size_bytes}, call,
                     [&](const objstore::ObjectData& data) {
                       return decode_membership(stream.uuid(), row, data.bytes);
                     });
}

}  // namespace

Result<Membership> read_membership(const Stream& stream, Step step, const CallOptions& call) {
  ManifestReader reader(stream);
  BL_ASSIGN_OR_RETURN(HeadPtr head, reader.latest(call));
  for (;;) {
    BL_ASSIGN_OR_RETURN(const MembershipRow row, row_at(head->head, step));
    BL_ASSIGN_OR_RETURN(std::optional<Bytes> keys, read_keys(stream, row, call));
    if (keys) return Membership{row.from_step, row.digest, *std::move(keys)};
    // They may have gone with their row.
    BL_ASSIGN_OR_RETURN(head, reader.latest(call));
    const MembershipRow* now = head->head.membership_at(step);
    if (now == nullptr || *now != row) continue;
    return missing_object(data_key(row.object()),
                          fmt::format("though slot {} names it; see `batchloom store verify`",
                                      head->head.slot.value));
  }
}

}  // namespace batchloom::store
