// SPDX-License-Identifier: Apache-2.0
#include "batchloom/sources/python_worker.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <span>
#include <utility>

#include "batchloom/base/bytes.h"
#include "batchloom/base/log.h"
#include "batchloom/base/real_runtime.h"
#include "batchloom/sources/record_ids.h"

namespace batchloom::sources {
namespace {

/// More than a worker sends.
constexpr std::uint32_t kMaxFrameBytes = std::uint32_t{1} << 30;
constexpr std::uint32_t kWholeBatch = UINT32_MAX;

enum class WorkerOutcome : std::uint8_t { kGood, kWrong, kStorage, kMemory };
enum class RecordOutcome : std::uint8_t { kIds, kMasked, kBad, kBadId };

std::string python_of(const PythonOptions& options) {
  if (!options.python.empty()) return options.python;
  const char* named = std::getenv("BATCHLOOM_PYTHON");
  return named != nullptr && *named != '\0' ? named : "python3";
}

void put_u32(std::uint64_t value, Bytes& out) {
  out.resize(out.size() + 4);
  store_le(static_cast<std::uint32_t>(value), out.data() + out.size() - 4);
}

void put_text(std::string_view text, Bytes& out) {
  put_u32(text.size(), out);
  out.insert(out.end(), as_bytes(text).begin(), as_bytes(text).end());
}

Bytes request_of(const TextBatch& batch) {
  constexpr std::size_t kHeadBytes = 5;  // Its length, and whether there are answers.
  Bytes request(kHeadBytes);
  request.back() = std::byte{batch.has_answers};
  put_u32(batch.entries.size(), request);
  for (const TextBatch::Entry& entry : batch.entries) {
    put_text(entry.texts.text, request);
    if (batch.has_answers) put_text(entry.texts.answer, request);
  }
  store_le(static_cast<std::uint32_t>(request.size() - 4), request.data());
  return request;
}

/// A reply, from its front to its end. Beyond that nothing is given, and ok() says so.
class ReplyParser {
 public:
  explicit ReplyParser(ByteSpan bytes) : bytes_(bytes) {}

  ByteSpan take(std::size_t size) {
    if (size > bytes_.size()) {
      is_ok_ = false;
      return {};
    }
    const ByteSpan taken = bytes_.first(size);
    bytes_ = bytes_.subspan(size);
    return taken;
  }
  std::uint32_t take_u32() {
    const ByteSpan bytes = take(4);
    return bytes.empty() ? 0 : load_le<std::uint32_t>(bytes.data());
  }
  std::uint8_t take_u8() {
    const ByteSpan bytes = take(1);
    return bytes.empty() ? 0 : std::to_integer<std::uint8_t>(bytes[0]);
  }
  std::string_view take_text() { return as_text(take(take_u32())); }

  bool is_ok() const { return is_ok_; }
  bool is_at_end() const { return bytes_.empty(); }

 private:
  ByteSpan bytes_;
  bool is_ok_ = true;
};

EncodedText::Fault outside(std::uint64_t at, std::string_view id, std::uint32_t vocab) {
  return {.reason = BadRecordReason::kTokenId,
          .what = fmt::format("token {}: {}", at, outside_vocab(id, vocab))};
}

void take_ids(ReplyParser& reply, bool is_masked, std::uint32_t vocab, EncodedText& out) {
  const std::uint32_t count = reply.take_u32();
  const ByteSpan ids = reply.take(std::size_t{count} * 4);
  out.ids.resize(ids.size() / 4);
  if (!ids.empty()) std::memcpy(out.ids.data(), ids.data(), ids.size());
  if (is_masked) {
    const ByteSpan marks = reply.take(count);
    out.mask.emplace();
    for (const std::byte mark : marks) out.mask->push_back(std::to_integer<std::uint8_t>(mark));
  }
  const auto high = std::ranges::find_if(out.ids, [&](TokenId id) { return id >= vocab; });
  if (high == out.ids.end()) return;
  out.fault = outside(static_cast<std::uint64_t>(high - out.ids.begin()),
                      fmt::format("{}", static_cast<std::int32_t>(*high)), vocab);
}

EncodedText take_record(ReplyParser& reply, std::uint32_t vocab) {
  EncodedText encoded;
  const auto outcome = static_cast<RecordOutcome>(reply.take_u8());
  if (outcome == RecordOutcome::kBad) {
    encoded.fault = {.reason = BadRecordReason::kTokenizer, .what = std::string(reply.take_text())};
  } else if (outcome == RecordOutcome::kBadId) {
    const std::uint32_t at = reply.take_u32();
    encoded.fault = outside(at, reply.take_text(), vocab);
  } else {
    take_ids(reply, outcome == RecordOutcome::kMasked, vocab, encoded);
  }
  return encoded;
}

/// "records 0 to 255 of docs.jsonl", or the one that the worker told.
std::string place_of(const TextBatch& batch, std::uint32_t told = kWholeBatch) {
  if (batch.entries.empty()) return std::string(batch.shard);
  const std::uint64_t first = batch.entries.front().record;
  const std::uint64_t last = batch.entries.back().record;
  if (told < batch.entries.size()) {
    return fmt::format("{}: record {}", batch.shard, batch.entries[told].record);
  }
  if (first == last) return fmt::format("{}: record {}", batch.shard, first);
  return fmt::format("{}: records {} to {}", batch.shard, first, last);
}

Status failed_by(WorkerOutcome outcome, std::string what) {
  if (outcome == WorkerOutcome::kStorage) return Status::unavailable(std::move(what));
  if (outcome == WorkerOutcome::kMemory) return Status::exhausted(std::move(what));
  return Status::invalid(std::move(what));
}

}  // namespace

Result<std::unique_ptr<PythonWorker>> PythonWorker::start(const PythonFunction& function,
                                                          const PythonOptions& options) {
  const auto tell = [name = function.name](std::string_view line) {
    log_info(fmt::format("{}: {}", name, line));
  };
  const std::string python = python_of(options);
  // -B: bytecode knows its source by size and second, so one that is left there may be that of an
  // older text.
  auto process = ChildProcess::start(
      {.arguments = {python, "-u", "-B", "-c", std::string(python_worker_source()), function.folder,
                     function.name},
       .on_line = tell});
  if (!process.is_ok()) {
    return Status(process.status().kind(),
                  fmt::format("tokenizer {}: it runs in Python: {}; BATCHLOOM_PYTHON names another",
                              function.name, process.status().message()));
  }
  return std::unique_ptr<PythonWorker>(new PythonWorker(function, options, *std::move(process)));
}

PythonWorker::Limited PythonWorker::within(const CallOptions& call) const {
  const Time latest = make_real_runtime()->now() + options_.max_time;
  if (call.deadline <= latest) return {.call = call};
  return {.call = {.deadline = latest, .stop = call.stop}, .is_part = true};
}

std::string PythonWorker::hangs_text() const {
  const double seconds = std::chrono::duration<double>(options_.max_time).count();
  std::string text = fmt::format("no answer within {:g} s: does the function hang?", seconds);
  if (!options_.max_time_option.empty()) {
    text += fmt::format(" {} gives it more time", options_.max_time_option);
  }
  return text;
}

Status PythonWorker::exchange_failed(const Status& why, const Limited& limited) const {
  if (why.is(ErrorKind::kCancelled)) return why;
  const bool hangs = limited.is_part && why.is(ErrorKind::kUnavailable) &&
                     make_real_runtime()->now() >= limited.call.deadline;
  std::string text =
      fmt::format("its process: {}", hangs ? hangs_text() : std::string(why.message()));
  const std::string last = process_->last_lines();
  if (!last.empty()) text += fmt::format("; the last lines that it printed:\n{}", last);
  return Status(why.kind(), std::move(text));
}

Result<Bytes> PythonWorker::take_reply(const TextBatch& batch, const Limited& limited) {
  std::byte size_bytes[4];
  Status done = process_->read(size_bytes, limited.call);
  if (!done.is_ok()) return exchange_failed(done, limited).with_context(place_of(batch));
  const std::uint32_t size = load_le<std::uint32_t>(size_bytes);
  if (size < 1 || size > kMaxFrameBytes) {
    return Status::corruption(fmt::format("{}: a reply of {} bytes", place_of(batch), size));
  }
  Bytes reply(size);
  done = process_->read(reply, limited.call);
  if (!done.is_ok()) return exchange_failed(done, limited).with_context(place_of(batch));
  ReplyParser parser(reply);
  const auto outcome = static_cast<WorkerOutcome>(parser.take_u8());
  if (outcome == WorkerOutcome::kGood) return reply;
  const std::uint32_t record = parser.take_u32();
  return failed_by(outcome, fmt::format("{}: {}", place_of(batch, record), parser.take_text()));
}

Result<std::vector<EncodedText>> PythonWorker::encode(const TextBatch& batch, std::uint32_t vocab,
                                                      const CallOptions& call) {
  const auto named = [&](const Status& status) {
    return status.with_context("tokenizer " + function_.name);
  };
  if (!has_begun_) {
    const auto begun = take_reply({.shard = batch.shard, .has_answers = false}, within(call));
    if (!begun.is_ok()) return named(begun.status());
    has_begun_ = true;
  }
  const Limited limited = within(call);
  const Status sent = process_->write(request_of(batch), limited.call);
  if (!sent.is_ok()) return named(exchange_failed(sent, limited).with_context(place_of(batch)));
  const auto reply = take_reply(batch, limited);
  if (!reply.is_ok()) return named(reply.status());
  ReplyParser parser(ByteSpan(*reply).subspan(1));
  std::vector<EncodedText> encoded;
  for (std::size_t i = 0; i < batch.entries.size(); ++i) {
    encoded.push_back(take_record(parser, vocab));
  }
  if (parser.is_ok() && parser.is_at_end()) return encoded;
  return named(Status::corruption(place_of(batch) + ": a reply of another form"));
}

}  // namespace batchloom::sources
