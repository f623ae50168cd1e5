//! What a test needs of the machine it runs on.

use std::io::Write;

/// Whether this runs in continuous integration (`CI` is set, and not to `false` or `0`): there no
/// test may be skipped.
pub fn is_ci() -> bool {
    std::env::var("CI").is_ok_and(|value| !matches!(&*value, "" | "0" | "false"))
}

/// Hands out what a test needs, or `None` where the machine does not have it, so that the test can
/// return early. What is not tested is announced, past the test runner's capture; in CI it is a
/// failure that tells the remedy.
///
/// ```
/// use hardpan_test_support::prerequisite;
///
/// let shell = Some("/bin/sh").filter(|path| std::path::Path::new(path).exists());
/// let Some(shell) = prerequisite("a shell", "install dash", shell) else { return };
/// assert!(shell.ends_with("sh"));
/// ```
pub fn prerequisite<T>(what: &str, remedy: &str, found: Option<T>) -> Option<T> {
    check(is_ci(), what, remedy, found)
}

fn check<T>(is_ci: bool, what: &str, remedy: &str, found: Option<T>) -> Option<T> {
    if found.is_none() {
        let test = std::thread::current().name().unwrap_or("a test").to_owned();
        assert!(!is_ci, "{test} needs {what}, and in CI nothing is skipped: {remedy}");
        let line = format!("not tested here: {test} needs {what} ({remedy})\n");
        // Nothing depends on it: standard error may be closed.
        let _ = std::io::stderr().write_all(line.as_bytes());
    }
    found
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn what_is_there_is_handed_out() {
        assert_eq!(check(true, "a number", "count", Some(1)), Some(1));
        assert_eq!(check(false, "a number", "count", Some(1)), Some(1));
    }

    #[test]
    fn what_is_missing_is_passed_over_on_a_person_s_machine() {
        assert_eq!(check::<u8>(false, "a unicorn (not really)", "nothing to do", None), None);
    }

    #[test]
    #[should_panic(expected = "needs a unicorn, and in CI nothing is skipped: catch one")]
    fn what_is_missing_fails_in_ci() {
        check::<u8>(true, "a unicorn", "catch one", None);
    }
}
