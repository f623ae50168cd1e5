#![no_main]

use hardpan_session::{Session, lines};

// Whatever a session file holds: every line is an entry or is reported with its text.
libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Ok(session) = Session::parse("s", input) else { return };
    let input = input.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(input);
    let told = lines(input).skip(1).filter(|line| !line.trim_ascii().is_empty()).count();
    let read = session.entries.len() - session.recovered.len();
    let kept = session.problems.iter().filter(|problem| problem.raw().is_some()).count();
    assert_eq!(read + kept, told);
});
