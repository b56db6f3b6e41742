// SPDX-License-Identifier: Apache-2.0
#include "python/bindings/stored.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "batchloom/store/piece_content.h"
#include "python/bindings/arrays.h"
#include "python/bindings/module.h"

namespace batchloom::python {
namespace {

namespace nb = nanobind;

struct StoredPiece {
  client::StepPtr step;
  const store::RunPiece* piece;  ///< Of the step.
};

struct StoredTensor {
  client::StepPtr step;
  const store::RunPiece::Tensor* tensor;  ///< Of the step.
};

std::vector<StoredPiece> pieces_of(const StoredMicroBatch& micro_batch) {
  std::vector<StoredPiece> pieces;
  for (const store::RunPiece& piece : micro_batch.get().pieces) {
    pieces.push_back({micro_batch.step, &piece});
  }
  return pieces;
}

std::vector<std::uint32_t> ring_of(const StoredMicroBatch& micro_batch) {
  std::vector<std::uint32_t> ring;
  for (const model::HdpRank rank : micro_batch.get().ring) ring.push_back(rank.value);
  return ring;
}

double offload_of(const StoredMicroBatch& micro_batch) {
  return static_cast<double>(micro_batch.get().offload.value) / model::kOffloadAll.value;
}

std::tuple<std::uint32_t, std::uint32_t, std::uint64_t, std::uint32_t> sample_of(
    const StoredPiece& self) {
  const model::SampleId& id = self.piece->sample;
  return {id.source.value, id.epoch.value, id.index.value, id.part.value};
}

std::optional<std::uint32_t> next_token_of(const StoredPiece& self) {
  if (!self.piece->has_next_token) return std::nullopt;
  return store::token_at(self.piece->next_token, self.step->token_width, 0);
}

std::optional<std::vector<std::pair<std::uint32_t, std::uint32_t>>> labels_of(
    const StoredPiece& self) {
  if (self.piece->all_labels) return std::nullopt;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> labels;
  for (const store::LabelInterval& interval : self.piece->labels) {
    labels.emplace_back(interval.begin, interval.end);
  }
  return labels;
}

std::vector<StoredTensor> tensors_of(const StoredPiece& self) {
  std::vector<StoredTensor> tensors;
  for (const store::RunPiece::Tensor& tensor : self.piece->tensors) {
    tensors.push_back({self.step, &tensor});
  }
  return tensors;
}

std::string type_of(const StoredTensor& self) {
  switch (self.tensor->info.type) {
    case store::TensorType::kU8: return "u8";
    case store::TensorType::kI32: return "i32";
    case store::TensorType::kI64: return "i64";
    case store::TensorType::kF16: return "f16";
    case store::TensorType::kBf16: return "bf16";
    case store::TensorType::kF32: return "f32";
  }
  return "";
}

void bind_stored_tensor(nb::module_& module) {
  nb::class_<StoredTensor>(module, "StoredTensor", "What goes with a token of a piece: a picture.")
      .def_prop_ro(
          "token", [](const StoredTensor& self) { return self.tensor->token; },
          "Its token, counted from the piece's first.")
      .def_prop_ro("name", [](const StoredTensor& self) { return self.tensor->info.name; })
      .def_prop_ro("type", type_of, "u8, i32, i64, f16, bf16 or f32.")
      .def_prop_ro(
          "array",
          [](const StoredTensor& self) {
            return make_tensor(self.tensor->info, self.tensor->bytes, self.step);
          },
          nb::sig("def array(self) -> numpy.ndarray"),
          "Read-only, without a copy; bf16 as the bits of uint16.");
}

void bind_stored_piece(nb::module_& module) {
  nb::class_<StoredPiece>(module, "StoredPiece", "Tokens [lo, hi) of a sample, as stored.")
      .def_prop_ro("sample", sample_of, "(source, epoch, record, part)")
      .def_prop_ro(
          "sample_tokens", [](const StoredPiece& self) { return self.piece->sample_tokens; },
          "Of the whole sample.")
      .def_prop_ro("lo", [](const StoredPiece& self) { return self.piece->lo; })
      .def_prop_ro("hi", [](const StoredPiece& self) { return self.piece->hi; })
      .def_prop_ro(
          "first_position", [](const StoredPiece& self) { return self.piece->first_position; },
          "The position, in its record, of the sample's token 0.")
      .def_prop_ro(
          "tokens",
          [](const StoredPiece& self) {
            return make_ids(self.piece->tokens, self.step->token_width, self.step);
          },
          nb::sig("def tokens(self) -> numpy.ndarray"),
          "Read-only, uint16 or uint32, without a copy.")
      .def_prop_ro("next_token", next_token_of,
                   "The token after the piece; None at the end of a record.")
      .def_prop_ro("labels", labels_of,
                   "Which labels count, as intervals from the piece's first token on; None: all "
                   "that exist.")
      .def_prop_ro("tensors", tensors_of, "By ascending token.");
}

}  // namespace

void bind_stored(nb::module_& module) {
  bind_stored_tensor(module);
  bind_stored_piece(module);
  nb::class_<StoredMicroBatch>(module, "StoredMicroBatch",
                               "A micro-batch as it was stored, verified.")
      .def_prop_ro("pieces", pieces_of, "Empty for a filler.")
      .def_prop_ro(
          "task", [](const StoredMicroBatch& self) { return self.get().task; },
          "The plan's task that it belongs to.")
      .def_prop_ro("ring", ring_of, "The HDP ranks that run this task together, in ring order.")
      .def_prop_ro("offload", offload_of, "The share of its activations to be kept on the host.");
}

}  // namespace batchloom::python
