// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/record_table.h"

#include <gmock/gmock.h>

namespace batchloom::planning {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

RecordTable two_records() {
  return RecordTable::create(
             {{.name = "pages",
               .records = {{.tokens = 10, .pictures = {{0, 64}, {6, 128}}}, {.tokens = 7}}}})
      .value();
}

Part part_of(std::uint64_t record, std::uint32_t part, std::uint64_t first, std::uint32_t tokens) {
  Part result;
  result.id.index = model::RecordIndex(record);
  result.id.part = model::PartIndex(part);
  result.first_position = first;
  result.tokens = tokens;
  return result;
}

TEST(RecordTable, APictureBelongsToThePartInWhichItBegins) {
  RecordTable table = two_records();
  const model::SampleMeta first = table.describe(part_of(0, 0, 0, 6)).value();
  EXPECT_THAT(first.image_patches, ElementsAre(64));
  EXPECT_EQ(first.valid_labels, 6U);
  const model::SampleMeta second = table.describe(part_of(0, 1, 6, 4)).value();
  EXPECT_THAT(second.image_patches, ElementsAre(128));
  EXPECT_EQ(second.valid_labels, 3U) << "the record's last token has no label";
  EXPECT_EQ(second.first_position, 6U);
}

TEST(RecordTable, RefusesPartsThatItsRecordsDoNotHave) {
  RecordTable table = two_records();
  EXPECT_EQ(table.describe(part_of(2, 0, 0, 1)).status().to_string(),
            "invalid: sample 0:0:2:0: there is no such record");
  EXPECT_EQ(table.describe(part_of(1, 0, 3, 5)).status().to_string(),
            "invalid: sample 0:0:1:0: tokens [3, 8) of a record of 7");
}

TEST(RecordTable, RefusesRecordsThatCannotBe) {
  const auto refusal = [](std::vector<TableSource> sources) {
    return RecordTable::create(std::move(sources)).status().to_string();
  };
  EXPECT_EQ(refusal({{.name = "", .records = {}}}), "invalid: source 0 has no name");
  EXPECT_EQ(refusal({{.name = "a", .records = {}}, {.name = "a", .records = {}}}),
            "invalid: source 'a' is given twice");
  const auto of_pictures = [&](std::vector<RecordPicture> pictures) {
    return refusal({{.name = "a", .records = {{.tokens = 9, .pictures = std::move(pictures)}}}});
  };
  EXPECT_THAT(of_pictures({{1, 0}}), HasSubstr("source 'a', record 0, picture 0: no patches"));
  EXPECT_THAT(of_pictures({{9, 1}}), HasSubstr("begins at token 9, beyond the record's 9"));
  EXPECT_THAT(of_pictures({{5, 1}, {4, 1}}), HasSubstr("picture 1: begins at token 4, before"));
}

}  // namespace
}  // namespace batchloom::planning
