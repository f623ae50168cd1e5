//! The test runner of the generated repository: it reads the files as they are, prints a line for
//! every function, and fails where a function has a defect.

/// The path of the script.
pub(super) const CHECK_PATH: &str = "check.sh";

/// `./check.sh PART` tests the files whose path contains PART. What it prints depends on the files
/// alone: counts and "times" come from the number of characters.
pub(super) const CHECK_SCRIPT: &str = r#"#!/bin/sh
find src -name '*.py' | grep -- "$1" | sort | xargs awk '
function finish() {
  if (name == "") return
  total++
  if (defect != "") {
    failed++
    printf "test %s::%s ... FAILED\n", file, name
    details = details sprintf("\n---- %s::%s ----\n%s\nassertion failed: left %d, right %d\n", file, name, defect, size, size % 89)
  } else printf "test %s::%s ... ok (%d checks)\n", file, name, size % 97 + 1
  name = ""; defect = ""; size = 0
}
FNR == 1 { finish(); file = FILENAME }
/^def / { finish(); name = $2; sub(/\(.*/, "", name) }
{ size += length($0); all += length($0) }
/FIXME/ { defect = defect FNR ": " $0 "\n" }
END {
  finish()
  print details
  printf "%d tests, %d failed, finished in %d.%02ds\n", total, failed, all / 20000, all % 100
  exit failed > 0
}'
"#;
