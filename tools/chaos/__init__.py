# SPDX-License-Identifier: Apache-2.0
"""Real processes on one stream, killed and stopped at random, and judged by what must come out.

`settings` says how a run is made, `roles` who takes part, `looks` where a kill hits, `step_logs`
what ranks have read, `judge` what is wrong with it, `scenario` how it goes, `summary` what is
printed.
"""
