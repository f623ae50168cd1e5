//! [`compile_glob`]: globs from anybody, compiled without the risk of a crash.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use thiserror::Error;

/// The longest pattern, in bytes: as long as the longest path.
const MAX_BYTES: usize = 4096;
/// How deep braces may be nested: the parser and the compiler call themselves once for each.
const MAX_DEPTH: usize = 16;

/// Why a glob cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum GlobError {
    /// It is too long.
    #[error("the pattern has more than {MAX_BYTES} bytes: use a shorter one")]
    TooLong,
    /// Its braces are nested too deep.
    #[error("the pattern nests braces more than {MAX_DEPTH} deep: use fewer")]
    TooDeep,
    /// It is no glob, or compiles to something too large.
    #[error(transparent)]
    Invalid(#[from] globset::Error),
}

/// Compiles a glob in which only `**` matches a `/`.
pub fn compile_glob(pattern: &str) -> Result<GlobSet, GlobError> {
    check_glob(pattern)?;
    // Not `compile_matcher`, which panics where the pattern is too large.
    let glob = GlobBuilder::new(pattern).literal_separator(true).build()?;
    Ok(GlobSetBuilder::new().add(glob).build()?)
}

/// Checks what parsing a glob would cost, before it is parsed.
pub(crate) fn check_glob(pattern: &str) -> Result<(), GlobError> {
    if pattern.len() > MAX_BYTES {
        return Err(GlobError::TooLong);
    }
    let (mut depth, mut deepest) = (0_usize, 0);
    // Escaped braces count too: nobody needs that many.
    for byte in pattern.bytes() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    if deepest > MAX_DEPTH { Err(GlobError::TooDeep) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_pattern_costs_more_than_an_error() {
        let nested = |depth: usize| "{a,".repeat(depth) + &"}".repeat(depth);
        assert!(compile_glob(&nested(16)).is_ok());
        for depth in [17, 300] {
            assert!(matches!(compile_glob(&nested(depth)), Err(GlobError::TooDeep)), "{depth}");
        }
        assert!(matches!(compile_glob(&nested(100_000)), Err(GlobError::TooLong)));
        assert!(matches!(compile_glob(&"{".repeat(4000)), Err(GlobError::TooDeep)));
        assert!(matches!(compile_glob("a{b"), Err(GlobError::Invalid(_))));
        // Compiles to more than the matcher takes, or does not: it is no panic.
        let _ = compile_glob(&format!("{{{}}}", "[!a]*,".repeat(600)));
    }
}
