#![no_main]

use hardpan_agent::approval::ApprovalRule;
use hardpan_tools::CallSubject;

// What a rule for a command allows is one plain command to a shell, and begins as the rule does.
// The input is the rule's words, a NUL, and the command.
libfuzzer_sys::fuzz_target!(|input: &str| {
    let Some((words, line)) = input.split_once('\0') else { return };
    // As the rule reads them.
    let words = words.trim();
    if ["exactly:", "read-only:"].iter().any(|form| words.starts_with(form)) {
        return;
    }
    for form in ["", "exactly:", "read-only:"] {
        let Ok(rule) = format!("bash({form}{words})").parse::<ApprovalRule>() else { continue };
        let subject = CallSubject::Command(line.to_owned());
        if !rule.covers("bash", &subject, |_| None) {
            continue;
        }
        assert!(hardpan_fuzz::is_one_command(line), "{words:?} allows {line:?}");
        let given = shlex::split(line).expect("it has words");
        let allowed = shlex::split(words).expect("it has words");
        assert_eq!(given.first(), allowed.first(), "{words:?} allows {line:?}");
        if form == "exactly:" {
            assert_eq!(given, allowed, "{words:?} allows {line:?}");
        }
        // A rule for a command covers nothing else.
        assert!(!rule.covers("edit", &subject, |_| None));
    }
});
