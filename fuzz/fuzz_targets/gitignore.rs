#![no_main]

use std::path::Path;

// Whatever a file of rules holds: those that can be used hold, and the others are told.
libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let mut problems = Vec::new();
    let rules =
        hardpan_workspace::compile_rules(Path::new("/p"), input, &mut |problem| problems.push(problem));
    for path in ["/p/a", "/p/src/main.rs", "/p/target/x", "/p/{a}"] {
        for is_dir in [false, true] {
            let _ = rules.matched(path, is_dir);
        }
    }
    // At most the first line that cannot be used, and that all together are too many.
    assert!(problems.len() <= 2);
});
