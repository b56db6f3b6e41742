// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace nanobind __attribute__((visibility("hidden"))) {
  class module_;
}

namespace batchloom::python {

/// Errors of the library become the exceptions of batchloom.errors.
void bind_errors(nanobind::module_& module);
/// Topology.
void bind_topology(nanobind::module_& module);
/// plan(), Plan and Piece.
void bind_plan(nanobind::module_& module);
/// StoredMicroBatch, StoredPiece and StoredTensor.
void bind_stored(nanobind::module_& module);
/// Batch and MicroBatch.
void bind_batch(nanobind::module_& module);
/// whole_number().
void bind_whole_number(nanobind::module_& module);
/// Consumer.
void bind_consumer(nanobind::module_& module);

}  // namespace batchloom::python
