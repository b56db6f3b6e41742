// SPDX-License-Identifier: Apache-2.0
#include "python/bindings/batch.h"

#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "batchloom/client/picture_spans.h"
#include "batchloom/client/state_text.h"
#include "python/bindings/module.h"
#include "python/bindings/stored.h"

namespace batchloom::python {
namespace {

namespace nb = nanobind;

struct MicroBatch {
  Batch batch;
  std::size_t place = 0;

  const client::MicroBatchArrays& arrays() const { return batch.data->view.micro_batches[place]; }
};

std::vector<MicroBatch> micro_batches_of(const Batch& batch) {
  std::vector<MicroBatch> micro_batches;
  for (std::size_t place = 0; place < batch.data->view.micro_batches.size(); ++place) {
    micro_batches.push_back({batch, place});
  }
  return micro_batches;
}

nb::bytes state_of(const Batch& batch) {
  const std::string text = client::to_text(batch.data->state);
  return nb::bytes(text.data(), text.size());
}

std::vector<std::pair<std::uint32_t, std::string>> events_of(const Batch& batch) {
  std::vector<std::pair<std::uint32_t, std::string>> events;
  for (const store::RunEvent& event : batch.data->step().events) {
    events.emplace_back(event.micro_batch,
                        event.phase == model::Phase::kForward ? "forward" : "backward");
  }
  return events;
}

/// A property that gives one of the micro-batch's arrays.
template <auto kArray>
nb::object view_of(const MicroBatch& self) {
  return make_array(self.batch.framework, self.arrays().*kArray, self.batch.data);
}

std::vector<client::PictureSpan> pictures_of(const MicroBatch& self) {
  return client::pictures_of(self.batch.data->step().micro_batches[self.place]);
}

nb::list images_of(const MicroBatch& self) {
  nb::list images;
  for (const client::PictureSpan& picture : pictures_of(self)) {
    images.append(make_picture(self.batch.framework, picture, self.batch.data->view.step));
  }
  return images;
}

std::vector<std::pair<std::uint32_t, std::uint32_t>> image_spans_of(const MicroBatch& self) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> spans;
  for (const client::PictureSpan& picture : pictures_of(self)) {
    spans.emplace_back(picture.begin, picture.end);
  }
  return spans;
}

void bind_micro_batch(nb::module_& module) {
  using client::MicroBatchArrays;
  nb::class_<MicroBatch>(
      module, "MicroBatch",
      "What one rank runs in one forward: sequences one behind the other, without padding. Arrays "
      "are views of one buffer for the whole step, which goes back to its pool with the last of "
      "them.")
      .def_prop_ro("tokens", view_of<&MicroBatchArrays::tokens>,
                   nb::sig("def tokens(self) -> typing.Any"), "int32 ids.")
      .def_prop_ro("labels", view_of<&MicroBatchArrays::labels>,
                   nb::sig("def labels(self) -> typing.Any"),
                   "int64: of each token the next one in its record; -100 at the end of a record, "
                   "and where it does not count.")
      .def_prop_ro("positions", view_of<&MicroBatchArrays::positions>,
                   nb::sig("def positions(self) -> typing.Any"),
                   "int32: of each token in its record.")
      .def_prop_ro("cu_seqlens", view_of<&MicroBatchArrays::cu_seqlens>,
                   nb::sig("def cu_seqlens(self) -> typing.Any"),
                   "int32: 0, and where each sequence ends. Attention does not cross them.")
      .def_prop_ro("images", images_of, nb::sig("def images(self) -> list[typing.Any]"),
                   "Its pictures, uint8 of [height, width, 3], not to be written to.")
      .def_prop_ro("image_spans", image_spans_of,
                   "(begin, end) for each of its images: the rows of tokens that stand for its "
                   "patches, row by row. A ring's other ranks may have the last of them.")
      .def_prop_ro(
          "stored",
          [](const MicroBatch& self) {
            return StoredMicroBatch{self.batch.data->view.step, self.place};
          },
          "The bytes behind it, verified, without any copy.")
      .def("__len__", [](const MicroBatch& self) { return self.arrays().tokens.size(); })
      .def("__repr__", [](const MicroBatch& self) {
        return fmt::format("<MicroBatch of {} tokens in {} sequences>", self.arrays().tokens.size(),
                           self.arrays().cu_seqlens.size() - 1);
      });
}

}  // namespace

void bind_batch(nb::module_& module) {
  bind_micro_batch(module);
  nb::class_<Batch>(module, "Batch", "One rank's part of one optimizer step.")
      .def_prop_ro("step", [](const Batch& self) { return self.data->step().step.value; })
      .def_prop_ro("state", state_of,
                   "For the checkpoint that holds what was learned from this step: the stream's "
                   "id, the next step, and a hash of all samples so far, which is equal on all "
                   "ranks.")
      .def_prop_ro(
          "global_valid_labels",
          [](const Batch& self) { return self.data->step().global_valid_labels; },
          "Labels that count, on all ranks together: what the sum of losses is divided by "
          "where there are any: a step of nothing but prompts has 0.")
      .def_prop_ro("micro_batches", micro_batches_of)
      .def_prop_ro("events", events_of,
                   "(micro-batch, \"forward\" or \"backward\") in the order in which this rank "
                   "runs them.")
      .def_prop_ro(
          "producer", [](const Batch& self) { return self.data->step().producer; },
          "The name of whoever wrote it.")
      .def("__repr__", [](const Batch& self) {
        return fmt::format("<Batch of step {}, {} micro-batches>", self.data->step().step.value,
                           self.data->view.micro_batches.size());
      });
}

}  // namespace batchloom::python
