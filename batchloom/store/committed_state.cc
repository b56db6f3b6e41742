// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/committed_state.h"

#include <string>

#include "batchloom/store/codec.h"
#include "batchloom/store/keys.h"
#include "batchloom/store/read_object.h"

namespace batchloom::store {

Result<std::optional<Bytes>> committed_state(const Stream& stream, const ProducerRow& row,
                                             const CallOptions& call) {
  if (!row.state.ref) return std::optional<Bytes>(row.state.inline_bytes);
  const std::string key = data_key(row.state_object());
  return read_object(stream.objects(), {key, row.state.ref->size_bytes}, call,
                     [&](const objstore::ObjectData& data) {
                       return decode_state(stream.uuid(), row, data.bytes);
                     });
}

}  // namespace batchloom::store
