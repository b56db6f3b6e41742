// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/stream.h"

#include "batchloom/store/floor.h"
#include "batchloom/store/read_object.h"

namespace batchloom::store {

Result<StreamFormat> read_format(objstore::ObjectStore& objects, const CallOptions& call) {
  BL_ASSIGN_OR_RETURN(
      std::optional<StreamFormat> format,
      read_object(objects, {kFormatKey, kSmallObjectMaxBytes}, call,
                  [](const objstore::ObjectData& data) { return decode_format(data.bytes); }));
  if (!format) {
    return Status::not_found(
        "FORMAT: there is no stream here; make one with `batchloom store init`");
  }
  return *std::move(format);
}

Result<std::unique_ptr<Stream>> Stream::open(const StreamDeps& deps, const StreamOptions& options,
                                             const CallOptions& call) {
  BL_RETURN_IF_ERROR(validate(options.limits));
  BL_ASSIGN_OR_RETURN(StreamFormat format, read_format(deps.objects, call));
  std::unique_ptr<Stream> stream(new Stream(deps, options, std::move(format)));
  if (!options.even_damaged) BL_RETURN_IF_ERROR(check_floor(*stream, call));
  return stream;
}

Txid Stream::random_txid() const {
  const std::uint64_t high = runtime().random();
  const std::uint64_t low = runtime().random();
  return {high, low};
}

}  // namespace batchloom::store
