// SPDX-License-Identifier: Apache-2.0
// `batchloom calibrate`: a cost model of a user's timings.
#include "batchloom/planning/calibrate.h"

#include <fmt/format.h>

#include "batchloom/planning/cost_model_toml.h"
#include "batchloom/planning/timings.h"
#include "batchloom/simulator/cluster.h"
#include "batchloom/simulator/input_file.h"
#include "cli/commands.h"
#include "cli/output_file.h"

namespace batchloom::cli {
namespace {

constexpr std::size_t kTimingsMaxBytes = std::size_t{64} << 20;

void add_errors(std::string_view part, std::string_view error, const planning::RowErrors& errors,
                std::vector<Fields>& rows) {
  constexpr double kPercentPerPpm = 1e-4;
  Fields& row = rows.emplace_back();
  row.add("part", part).add("error", error).add("rows", std::uint64_t{errors.rows});
  if (errors.rows == 0) return;
  row.add_decimal("mean_percent", static_cast<double>(errors.mean_ppm) * kPercentPerPpm, 2)
      .add_decimal("worst_percent", static_cast<double>(errors.worst_ppm) * kPercentPerPpm, 2)
      .add("worst_line", std::uint64_t{errors.worst_line});
}

/// A row for each kind of error; docs/formats/cost_model.md says what they are.
void add_fit(std::string_view part, const planning::FitError& fit, std::vector<Fields>& rows) {
  add_errors(part, "residual", fit.residual, rows);
  add_errors(part, "left_out", fit.left_out, rows);
  add_errors(part, "left_out_first_extrapolated", fit.left_out_first, rows);
  add_errors(part, "left_out_last_extrapolated", fit.left_out_last, rows);
}

}  // namespace

Status run(const Calibrate& args, Runtime&) {
  if (!args.out.empty()) BL_RETURN_IF_ERROR(check_file_target(args.out));
  BL_ASSIGN_OR_RETURN(planning::CostModel base, simulator::find_cost_model(args.base));
  BL_ASSIGN_OR_RETURN(const std::string csv,
                      simulator::read_text_file(args.timings, kTimingsMaxBytes));
  const auto timings = planning::parse_timings(csv);
  if (!timings.is_ok()) return timings.status().with_context(args.timings);
  base.name = args.name;
  base.version = 1;
  const auto made = planning::calibrate(*timings, std::move(base));
  if (!made.is_ok()) return made.status().with_context(args.timings);
  if (!args.out.empty()) BL_RETURN_IF_ERROR(write_file(args.out, to_toml(made->model)));
  std::vector<Fields> fits;
  add_fit("attention", made->attention, fits);
  add_fit("linear", made->linear, fits);
  if (made->encoder.points > 0) add_fit("encoder", made->encoder, fits);
  Fields fields;
  fields.add("name", made->model.name)
      .add("base", args.base)
      .add("out", args.out)
      .add("attention_points", std::uint64_t{made->attention.points})
      .add("linear_points", std::uint64_t{made->linear.points})
      .add("encoder_points", std::uint64_t{made->encoder.points})
      .add("fit", std::span<const Fields>(fits));
  print_result(fields, args.json);
  return Status::ok();
}

}  // namespace batchloom::cli
