//! A broken rule: which one, and how it shows.

/// What a check comes to.
pub type Verdict = Result<(), Failure>;

/// A broken rule.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The rule, always in the same words: a smaller session must break the same one.
    pub rule: &'static str,
    /// Where and how.
    pub detail: String,
}

/// Fails with `rule` unless `holds`.
pub fn require(holds: bool, rule: &'static str, detail: impl FnOnce() -> String) -> Verdict {
    if holds { Ok(()) } else { Err(Failure { rule, detail: detail() }) }
}
