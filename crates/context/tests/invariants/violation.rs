//! [`Violation`]: which rule a request breaks, and how.

/// The result of a check.
pub type CheckResult = Result<(), Violation>;

/// A rule that a request breaks.
#[derive(Clone, Debug)]
pub struct Violation {
    /// The rule, always in the same words: a smaller session must break the same one.
    pub rule: &'static str,
    /// Where it is broken, and how.
    pub detail: String,
}

/// Fails with `rule` unless `holds`.
pub fn require(holds: bool, rule: &'static str, detail: impl FnOnce() -> String) -> CheckResult {
    if holds { Ok(()) } else { Err(Violation { rule, detail: detail() }) }
}
