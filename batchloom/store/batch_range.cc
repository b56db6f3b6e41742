// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/batch_range.h"

#include <fmt/format.h>

#include "batchloom/store/damage.h"
#include "batchloom/store/run_table.h"

namespace batchloom::store {
namespace {

// Far beyond any store, and far from where sums of offsets would overflow.
constexpr std::uint64_t kBatchMaxBytes = std::uint64_t{1} << 60;

// Of an object with so many runs. Precondition: at most kRunsMax.
std::uint64_t least_bytes(const Entry& entry) {
  const std::uint64_t runs = std::uint64_t{entry.ranks} * entry.steps;
  return first_run_offset(entry.ranks, entry.steps) + runs * kColumnAlignBytes + kBatchFooterBytes;
}

Status not_as_stated(const BatchContext& object, std::uint64_t actual) {
  return wrong_size(object.key, actual, object.size_bytes, "its entry");
}

Status missing(const BatchContext& object) {
  return missing_object(object.key,
                        "though the manifest refers to it; see `batchloom store verify`");
}

// A store refuses ranges beyond the end, which tells of a truncated object, and requests without
// permission, which do not.
Status explain_refusal(const Stream& stream, const BatchContext& object, const Status& refusal,
                       const CallOptions& call) {
  const auto info = stream.objects().head(object.key, call);
  if (info.is(ErrorKind::kInvalid)) return refusal;
  if (!info.is_ok()) return info.status();
  if (!*info) return missing(object);
  return (*info)->size_bytes == object.size_bytes ? refusal
                                                  : not_as_stated(object, (*info)->size_bytes);
}

}  // namespace

Result<BatchContext> describe_object(const Stream& stream, const Entry& entry,
                                     std::string_view key) {
  const std::uint64_t runs = std::uint64_t{entry.ranks} * entry.steps;
  if (runs == 0 || runs > kRunsMax || entry.size_bytes > kBatchMaxBytes ||
      entry.size_bytes < least_bytes(entry)) {
    return corrupt_at(
        key, 0,
        fmt::format("its entry says {} ranks, {} steps and {} bytes: no batch object is like that",
                    entry.ranks, entry.steps, entry.size_bytes));
  }
  return BatchContext{.key = key,
                      .identity = {.stream = stream.uuid(),
                                   .producer = entry.producer,
                                   .term = entry.term,
                                   .seq = entry.seq},
                      .steps = entry.steps,
                      .ranks = entry.ranks,
                      .size_bytes = entry.size_bytes};
}

Result<std::shared_ptr<const Bytes>> get_range(const Stream& stream, const BatchContext& object,
                                               Slice range, const CallOptions& call,
                                               ReadBuffers* buffers) {
  auto data = stream.objects().get_into(
      buffers == nullptr ? Bytes() : buffers->take(range.size_bytes), object.key,
      {.offset = range.offset_bytes, .length = range.size_bytes}, call);
  if (data.is(ErrorKind::kInvalid)) return explain_refusal(stream, object, data.status(), call);
  if (!data.is_ok()) return data.status();
  if (!*data) return missing(object);
  objstore::ObjectData& reply = **data;
  if (reply.object_size_bytes != object.size_bytes) {
    return not_as_stated(object, reply.object_size_bytes);
  }
  if (reply.bytes.size() != range.size_bytes) {
    return corrupt_at(object.key, range.offset_bytes + reply.bytes.size(),
                      fmt::format("a request for {} bytes from byte {} was answered with {}",
                                  range.size_bytes, range.offset_bytes, reply.bytes.size()));
  }
  if (buffers != nullptr) return buffers->share(std::move(reply.bytes));
  return std::make_shared<const Bytes>(std::move(reply.bytes));
}

}  // namespace batchloom::store
