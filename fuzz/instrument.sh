#!/usr/bin/env bash
# A RUSTC_WRAPPER: counts coverage in what reads the input, and in nothing else. Instrumenting all 280 crates takes most of
# the time of a short run, and leads the fuzzer into code that is not under test. Build scripts have no `--cfg fuzzing`.
crate='hardpan_(agent|app|files|fuzz|models|prompt|providers|session|workspace)|serde_json|serde_saphyr|granit_parser|toml|toml_parser|ignore|globset'
if [[ " $* " == *" --cfg fuzzing "* && " $* " =~ (" --crate-name "($crate)" "|fuzz_targets/) ]]; then
  exec "$@" -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table
fi
exec "$@"
