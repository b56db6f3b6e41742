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

Fields describe_fit(std::string_view part, const planning::FitError& fit) {
  constexpr double kPercentPerPpm = 1e-4;
  Fields fields;
  fields.add("part", part)
      .add("rows", std::uint64_t{fit.rows})
      .add("points", std::uint64_t{fit.points})
      .add_decimal("mean_error_percent", static_cast<double>(fit.mean_ppm) * kPercentPerPpm, 2)
      .add_decimal("worst_error_percent", static_cast<double>(fit.worst_ppm) * kPercentPerPpm, 2)
      .add("worst_line", std::uint64_t{fit.worst_line});
  return fields;
}

}  // namespace

Status run(const Calibrate& args, Runtime&) {
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
  fits.push_back(describe_fit("attention", made->attention));
  fits.push_back(describe_fit("linear", made->linear));
  if (made->encoder.rows > 0) fits.push_back(describe_fit("encoder", made->encoder));
  Fields fields;
  fields.add("name", made->model.name)
      .add("base", args.base)
      .add("out", args.out)
      .add("fit", std::span<const Fields>(fits));
  print_result(fields, args.json);
  return Status::ok();
}

}  // namespace batchloom::cli
