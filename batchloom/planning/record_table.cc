// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/record_table.h"

#include <fmt/format.h>

#include <set>
#include <utility>

namespace batchloom::planning {
namespace {

Status check_pictures_of(const TableSource& source, std::size_t index) {
  const TableRecord& record = source.records[index];
  std::uint32_t before = 0;
  for (std::size_t i = 0; i < record.pictures.size(); ++i) {
    const RecordPicture& picture = record.pictures[i];
    const std::string name =
        fmt::format("source '{}', record {}, picture {}", source.name, index, i);
    if (picture.patches == 0) return Status::invalid(name + ": no patches; a picture has some");
    if (picture.first_token >= record.tokens) {
      return Status::invalid(fmt::format("{}: begins at token {}, beyond the record's {}", name,
                                         picture.first_token, record.tokens));
    }
    if (picture.first_token < before) {
      return Status::invalid(fmt::format("{}: begins at token {}, before the picture ahead of it",
                                         name, picture.first_token));
    }
    before = picture.first_token;
  }
  return Status::ok();
}

}  // namespace

Result<RecordTable> RecordTable::create(std::vector<TableSource> sources) {
  RecordTable table;
  std::set<std::string> names;
  for (TableSource& source : sources) {
    if (source.name.empty()) {
      return Status::invalid(fmt::format("source {} has no name", table.sources_.size()));
    }
    if (!names.insert(source.name).second) {
      return Status::invalid(fmt::format("source '{}' is given twice", source.name));
    }
    for (std::size_t index = 0; index < source.records.size(); ++index) {
      BL_RETURN_IF_ERROR(check_pictures_of(source, index));
    }
    table.sources_.push_back({source.name, source.records.size()});
    table.records_.push_back(std::move(source.records));
  }
  return table;
}

Result<std::uint32_t> RecordTable::tokens(model::SourceId source, model::RecordIndex record) {
  return records_[source.value][record.value].tokens;
}

Result<model::SampleMeta> RecordTable::describe(const Part& part) {
  const model::SampleId& id = part.id;
  if (id.source.value >= records_.size() || id.index.value >= records_[id.source.value].size()) {
    return Status::invalid(fmt::format("sample {}: there is no such record", to_string(id)));
  }
  const TableRecord& record = records_[id.source.value][id.index.value];
  const std::uint64_t end = part.first_position + part.tokens;
  if (part.tokens == 0 || part.first_position >= record.tokens || end > record.tokens) {
    return Status::invalid(fmt::format("sample {}: tokens [{}, {}) of a record of {}",
                                       to_string(id), part.first_position, end, record.tokens));
  }
  model::SampleMeta meta;
  meta.id = id;
  meta.tokens = part.tokens;
  meta.valid_labels = part.tokens - (end == record.tokens ? 1U : 0U);
  meta.first_position = part.first_position;
  for (const RecordPicture& picture : record.pictures) {
    if (picture.first_token < part.first_position || picture.first_token >= end) continue;
    meta.image_patches.push_back(picture.patches);
  }
  return meta;
}

}  // namespace batchloom::planning
