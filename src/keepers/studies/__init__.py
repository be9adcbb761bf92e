"""Studies: many methods on many tables, scored by clustering, with a report.

`specification` (what to run) -> `plan` (tasks) -> `runner` and `worker` (outcomes, kept in `store`)
-> `scores`, `rank_tests` and `cost`, gathered in `results` -> `csv_tables`, `study_figures` and
`study_report`. `commands` are the commands; `paper_claims` checks what the SPCAFS paper claims.
"""
