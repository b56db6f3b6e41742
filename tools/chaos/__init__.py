# SPDX-License-Identifier: Apache-2.0
"""Real processes on one stream, killed and stopped at random, and judged by what must come out.

`settings` says how a run is made, `roles` who takes part, `looks` where a kill hits, `step_logs`
what ranks have read, `judge` what is wrong with it, `scenario` how it goes, `summary` what is
printed.

A whole pipeline: `pipeline_settings` and `corpus` say how it is made, `job` who takes part,
`kill_plan` which kills there are, `job_harm` in which order, `unaimed` when those come that hit
anywhere, `killer` how, `phases` and `stream_watch` what they hit, `pipeline_scenario` how it goes,
`pipeline_summary` what is printed.
"""
