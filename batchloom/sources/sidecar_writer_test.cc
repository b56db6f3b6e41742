// SPDX-License-Identifier: Apache-2.0
#include "batchloom/sources/sidecar_writer.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include "batchloom/objstore/fault_driver_testing.h"
#include "batchloom/objstore/local_store_testing.h"
#include "batchloom/objstore/posix_file_ops.h"
#include "batchloom/objstore/power_cut_testing.h"
#include "batchloom/sources/sidecar_testing.h"

namespace batchloom::sources {
namespace {

namespace fs = std::filesystem;
using objstore::FileCall;
using objstore::PowerCutFileOps;
using objstore::says;

/// Nullopt where there is no such file.
std::optional<Bytes> content_of(objstore::FileOps& files, const std::string& path) {
  const auto file = files.open_read(path).value();
  if (file == nullptr) return std::nullopt;
  Bytes bytes(file->size_bytes().value());
  EXPECT_EQ(file->read(0, bytes).value(), bytes.size());
  return bytes;
}

std::size_t entries_of(objstore::FileOps& files, const std::string& folder) {
  const auto opened = files.open_folder(folder).value();
  std::size_t count = 0;
  while (opened != nullptr && opened->next().value()) ++count;
  return count;
}

TEST(SidecarWriter, RefusesWhatTheFormatDoesNotHave) {
  PowerCutFileOps files;
  SidecarHeader header = test_header();
  header.contents.id_width_bytes = 3;
  EXPECT_TRUE(SidecarWriter::create(files, "/index", header).is(ErrorKind::kInvalid));
  header = test_header();
  header.block_records = kBlockRecords + 1;
  EXPECT_TRUE(SidecarWriter::create(files, "/index", header).is(ErrorKind::kInvalid));
}

TEST(SidecarWriter, RefusesRecordsByNumber) {
  PowerCutFileOps files;
  const auto writer = SidecarWriter::create(files, "/index", test_header()).value();
  ASSERT_TRUE(writer->append(*test_record(0, 3).record).is_ok());
  Record record = *test_record(1, 3).record;
  record.ids[1] = 65'536;
  const Status wide = writer->append(record);
  EXPECT_TRUE(wide.is(ErrorKind::kInvalid));
  EXPECT_TRUE(says(wide, "/index: record 1: id 65536 does not fit 2 bytes"));
  record = *test_record(1, 3).record;
  record.loss_mask = {1, 1};
  EXPECT_TRUE(says(writer->append(record), "record 1: a loss mask of 2 for 3 ids"));
}

TEST(SidecarWriter, TakesSizesAlone) {
  SidecarHeader header = test_header();
  header.contents = {};
  PowerCutFileOps files;
  const auto writer = SidecarWriter::create(files, "/index", header).value();
  const RecordSize size{
      .place = {.offset_bytes = 7, .size_bytes = 8}, .tokens = 5, .valid_labels = 3};
  ASSERT_TRUE(writer->append(size).is_ok());
  RecordSize wrong = size;
  wrong.valid_labels = 5;
  EXPECT_TRUE(says(writer->append(wrong), "record 1: 5 labels of 5 tokens"));
  EXPECT_EQ(writer->finish()->records, 1U);
  const Bytes bytes = content_of(files, "/index").value();
  EXPECT_EQ(SidecarView::open("index", bytes)->record(0)->size, size);
}

TEST(SidecarWriter, WritesRecordsThatAreLargerThanItsBuffers) {
  const std::vector<TestRecord> records = {test_record(0, 700'000), test_record(1, 4'097),
                                           test_record(2, 700'001)};
  SidecarHeader header = test_header();
  header.contents.id_width_bytes = 4;
  const Bytes bytes = sidecar_bytes(header, records);
  const auto view = SidecarView::open("index", bytes).value();
  for (std::uint64_t i = 0; i < records.size(); ++i) {
    EXPECT_EQ(told(view.payload(i).value()), expected(header.contents, records[i])) << i;
  }
}

TEST(SidecarWriter, WithoutFinishNothingIsLeft) {
  PowerCutFileOps files;
  {
    const auto writer = SidecarWriter::create(files, "/index", test_header()).value();
    ASSERT_TRUE(writer->append(*test_record(0, 3).record).is_ok());
    EXPECT_EQ(entries_of(files, "/.blidx.tmp"), 1U);
  }
  EXPECT_EQ(entries_of(files, "/.blidx.tmp"), 0U);
  EXPECT_EQ(content_of(files, "/index"), std::nullopt);
}

TEST(SidecarWriter, MakesTheFolderOfIndexes) {
  PowerCutFileOps files;
  EXPECT_TRUE(write_sidecar(files, "/indexes/a", test_header(), test_records(3)).is_ok());
  EXPECT_TRUE(content_of(files, "/indexes/a").has_value());
  const auto deep = write_sidecar(files, "/no/such/a", test_header(), test_records(3));
  EXPECT_TRUE(deep.is(ErrorKind::kNotFound));
  EXPECT_TRUE(says(deep.status(), "write the index /no/such/a: "));
}

TEST(SidecarWriter, AFullDiskIsExhaustedAndLeavesNoHalfFile) {
  PowerCutFileOps files;
  files.faults().fail_every(FileCall::kWrite, {.error = ENOSPC});
  const auto written = write_sidecar(files, "/index", test_header(), test_records(9));
  EXPECT_TRUE(written.is(ErrorKind::kExhausted));
  EXPECT_TRUE(says(written.status(), "write the index /index: "));
  files.faults().clear();
  EXPECT_EQ(content_of(files, "/index"), std::nullopt);
  EXPECT_EQ(entries_of(files, "/.blidx.tmp"), 0U);
}

TEST(SidecarWriter, AReadOnlyFolderIsAnErrorWithItsName) {
  PowerCutFileOps files;
  files.faults().fail_every(FileCall::kMakeFolder, {.error = EROFS});
  const auto written = write_sidecar(files, "/data/index", test_header(), {});
  EXPECT_TRUE(written.is(ErrorKind::kInvalid));
  EXPECT_TRUE(says(written.status(), "/data/.blidx.tmp"));
}

/// Whatever happens in whatever call: the index is the old one or the new one, as a whole, and the
/// next writer writes it.
void old_or_new_after(const objstore::NamedFault& fault) {
  const Bytes old_bytes = sidecar_bytes(test_header(), test_records(3));
  const Bytes new_bytes = sidecar_bytes(test_header(), test_records(9));
  const auto tried = objstore::at_every_call(fault, 3, [&](const objstore::FaultRun& run) {
    PowerCutFileOps files;
    EXPECT_TRUE(write_sidecar(files, "/index", test_header(), test_records(3)).is_ok());
    run.arm(files.faults());
    const auto written = write_sidecar(files, "/index", test_header(), test_records(9));
    const bool came = files.faults().met() > 0;
    files.faults().clear();
    if (run.power_cut_seed) files.power_cut(*run.power_cut_seed);
    files.faults().power_on();
    const auto found = content_of(files, "/index");
    EXPECT_TRUE(found.has_value());
    EXPECT_TRUE(found == old_bytes || found == new_bytes) << fault.name;
    EXPECT_TRUE(!written.is_ok() || found == new_bytes) << fault.name;
    EXPECT_TRUE(write_sidecar(files, "/index", test_header(), test_records(9)).is_ok());
    EXPECT_EQ(content_of(files, "/index"), new_bytes);
    EXPECT_EQ(entries_of(files, "/.blidx.tmp"), 0U);
    return came;
  });
  EXPECT_GT(tried, 5U) << fault.name;
}

TEST(SidecarWriter, AFaultInAnyCallLeavesTheOldIndexOrTheNewOne) {
  for (const auto& fault : objstore::faults_that_happen_once()) old_or_new_after(fault);
}

TEST(SidecarWriter, AFaultThatLastsLeavesTheOldIndexOrTheNewOne) {
  for (const auto& fault : objstore::faults_that_last()) old_or_new_after(fault);
}

TEST(SidecarWriter, OfTwoAtOnceOneIndexIsLeft) {
  PowerCutFileOps files;
  const auto first = SidecarWriter::create(files, "/index", test_header()).value();
  const auto second = SidecarWriter::create(files, "/index", test_header()).value();
  for (const TestRecord& record : test_records(2)) {
    EXPECT_TRUE(first->append(*record.record).is_ok());
    EXPECT_TRUE(second->append(*record.record).is_ok());
  }
  EXPECT_TRUE(second->finish().is_ok());
  EXPECT_TRUE(first->finish().is_ok());
  EXPECT_EQ(content_of(files, "/index"), sidecar_bytes(test_header(), test_records(2)));
  EXPECT_EQ(entries_of(files, "/.blidx.tmp"), 0U);
}

std::string bytes_of_file(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST(SidecarWriter, SeveralProcessesEndWithOneIndex) {
  const objstore::ScratchFolder scratch;
  const std::string path = scratch.path() + "/index";
  const auto records = test_records(50);
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    children.push_back(fork());
    if (children.back() != 0) continue;
    const auto files = objstore::make_posix_file_ops({.unnamed_temp_files = i % 2 == 0});
    bool good = true;
    for (int turn = 0; turn < 5; ++turn) {
      good = good && write_sidecar(*files, path, test_header(), records).is_ok();
    }
    _exit(good ? 0 : 1);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  const Bytes expected_bytes = sidecar_bytes(test_header(), records);
  EXPECT_EQ(bytes_of_file(path), as_text(expected_bytes));
  EXPECT_FALSE(fs::exists(scratch.path() + "/.blidx.tmp"));
}

TEST(SidecarWriter, TheFolderOfTemporaryFilesStaysForOthersOnly) {
  const objstore::ScratchFolder scratch;
  const std::string temp = scratch.path() + "/.blidx.tmp";
  for (const bool unnamed : {true, false}) {
    const auto files = objstore::make_posix_file_ops({.unnamed_temp_files = unnamed});
    const auto first = SidecarWriter::create(*files, scratch.path() + "/a", test_header()).value();
    ASSERT_TRUE(first->append(*test_record(0, 3).record).is_ok());
    {
      const auto given_up =
          SidecarWriter::create(*files, scratch.path() + "/b", test_header()).value();
    }
    ASSERT_TRUE(write_sidecar(*files, scratch.path() + "/c", test_header(), {}).is_ok());
    EXPECT_NE(fs::exists(temp), unnamed) << "a file without a name needs it only to get one";
    EXPECT_TRUE(first->finish().is_ok());
    EXPECT_TRUE(fs::exists(scratch.path() + "/a"));
    fs::remove(scratch.path() + "/a");
  }
  EXPECT_FALSE(fs::exists(temp));
}

TEST(SidecarWriter, WhatAKilledWriterLeavesIsSweptByTheNext) {
  const objstore::ScratchFolder scratch;
  const std::string path = scratch.path() + "/index";
  const auto files = objstore::make_posix_file_ops({.unnamed_temp_files = false});
  const pid_t child = fork();
  if (child == 0) {
    const auto writer = SidecarWriter::create(*files, path, test_header()).value();
    _exit(writer->append(*test_record(0, 3).record).is_ok() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  EXPECT_FALSE(fs::is_empty(scratch.path() + "/.blidx.tmp"));
  ASSERT_TRUE(write_sidecar(*files, path, test_header(), test_records(3)).is_ok());
  EXPECT_FALSE(fs::exists(scratch.path() + "/.blidx.tmp"));
}

}  // namespace
}  // namespace batchloom::sources
