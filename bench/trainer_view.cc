// SPDX-License-Identifier: Apache-2.0
// What does it take to make arrays for a trainer out of a rank's stored part of a step?
//
// One micro-batch of many pieces, all of whose labels count, or half of them in stretches. The
// buffer comes from a pool, as in a training loop. In turn with that, as many bytes are filled with
// zeros: what writing memory takes at least. The median of the rounds counts.
#include "batchloom/client/trainer_view.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "batchloom/base/real_runtime.h"
#include "bench/measure.h"

namespace batchloom {
namespace {

struct Shape {
  std::uint32_t piece_tokens = 0;
  store::TokenWidth width = store::TokenWidth::k16;
  bool masked = false;
};

struct Sizes {
  std::uint32_t tokens = 1U << 20;
  int rounds = 101;
};

/// A step of one micro-batch whose ids are all 1.
client::StepPtr make_step(const Shape& shape, std::uint32_t tokens) {
  constexpr std::uint32_t kStretch = 64;
  const std::size_t width = store::token_bytes(shape.width);
  auto bytes = std::make_shared<Bytes>((tokens + std::size_t{1}) * width);
  for (std::size_t i = 0; i < bytes->size(); i += width) (*bytes)[i] = std::byte{1};
  store::RunMicroBatch micro_batch;
  for (std::uint32_t at = 0; at + shape.piece_tokens <= tokens; at += shape.piece_tokens) {
    store::RunPiece piece;
    piece.hi = shape.piece_tokens;
    piece.has_next_token = true;
    piece.tokens = ByteSpan(*bytes).subspan(at * width, shape.piece_tokens * width);
    piece.next_token = ByteSpan(*bytes).first(width);
    piece.all_labels = !shape.masked;
    for (std::uint32_t lo = 0; shape.masked && lo < shape.piece_tokens; lo += 2 * kStretch) {
      piece.labels.push_back({lo, std::min(lo + kStretch, shape.piece_tokens)});
    }
    micro_batch.pieces.push_back(std::move(piece));
  }
  client::StepBatch step;
  step.token_width = shape.width;
  step.micro_batches.push_back(std::move(micro_batch));
  step.buffers.push_back(std::move(bytes));
  return std::make_shared<const client::StepBatch>(std::move(step));
}

struct Measured {
  double mtokens_per_s = 0;
  double of_zeros = 0;  ///< The time of the zeros over ours.
};

Measured measure(Runtime& runtime, const Shape& shape, const Sizes& sizes) {
  Counters counters;
  client::BufferPool pool(std::uint64_t{1} << 30, counters);
  const client::StepPtr step = make_step(shape, sizes.tokens);
  std::vector<double> seconds, zeros;
  const auto timed = [&](const auto& body) {
    const Time begin = runtime.now();
    body();
    return std::chrono::duration<double>(runtime.now() - begin).count();
  };
  for (int round = 0; round < sizes.rounds; ++round) {
    client::TrainerView view;
    seconds.push_back(timed([&] { view = must(client::view_for_trainer(step, pool)); }));
    zeros.push_back(
        timed([&] { std::memset(view.buffer.bytes().data(), 0, view.buffer.bytes().size()); }));
  }
  const double best = median(seconds);
  return {.mtokens_per_s = sizes.tokens / best / 1e6, .of_zeros = median(zeros) / best};
}

int run(const Sizes& sizes) {
  const auto runtime = make_real_runtime();
  std::vector<std::string> rows;
  double least_mtokens_per_s = 1e9;
  for (const std::uint32_t piece_tokens : {256U, 2048U, 32'768U}) {
    for (const store::TokenWidth width : {store::TokenWidth::k16, store::TokenWidth::k32}) {
      for (const bool masked : {false, true}) {
        const Measured measured = measure(
            *runtime, {.piece_tokens = piece_tokens, .width = width, .masked = masked}, sizes);
        least_mtokens_per_s = std::min(least_mtokens_per_s, measured.mtokens_per_s);
        rows.push_back(fmt::format(
            R"({{"piece_tokens": {}, "token_bytes": {}, "masked": {}, "mtokens_per_s": {:.1f}, )"
            R"("of_zeros": {:.3f}}})",
            piece_tokens, store::token_bytes(width), masked, measured.mtokens_per_s,
            measured.of_zeros));
      }
    }
  }
  fmt::print(R"({{"figures": {{"least_mtokens_per_s": {:.1f}}}, "rows": [{}]}})"
             "\n",
             least_mtokens_per_s, fmt::join(rows, ", "));
  return 0;
}

}  // namespace
}  // namespace batchloom

int main(int argc, char** argv) {
  const bool quick = argc > 1 && std::string_view(argv[1]) == "--quick";
  return batchloom::run(quick ? batchloom::Sizes{.tokens = 1U << 18, .rounds = 5}
                              : batchloom::Sizes{});
}
