// SPDX-License-Identifier: Apache-2.0
#include "batchloom/sources/record_offsets.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

namespace batchloom::sources {
namespace {

class OffsetsInMemory final : public RecordOffsets {
 public:
  explicit OffsetsInMemory(std::vector<RecordPlace> places) : places_(std::move(places)) {}

  std::uint64_t count() const override { return places_.size(); }
  RecordPlace place(std::uint64_t record) const override { return places_[record]; }

 private:
  std::vector<RecordPlace> places_;
};

}  // namespace

Result<std::shared_ptr<const RecordOffsets>> keep_offsets(
    std::string_view name, std::uint64_t max_bytes,
    const std::function<Status(const PlaceSink& found)>& scan) {
  std::vector<RecordPlace> places;
  BL_RETURN_IF_ERROR(scan([&](const RecordPlace& place) {
    if ((places.size() + 1) * sizeof(RecordPlace) > max_bytes) {
      return Status::exhausted(
          fmt::format("{}: the offsets of more than {} records do not fit into {} bytes; index the "
                      "file",
                      name, places.size(), max_bytes));
    }
    places.push_back(place);
    return Status::ok();
  }));
  return std::shared_ptr<const RecordOffsets>(std::make_shared<OffsetsInMemory>(std::move(places)));
}

}  // namespace batchloom::sources
