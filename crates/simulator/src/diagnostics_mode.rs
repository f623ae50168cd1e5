//! [`DiagnosticsMode`]: what servers say that compare requests.

/// What a request gets that asks why it missed the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DiagnosticsMode {
    /// The result of the comparison.
    #[default]
    Compared,
    /// The comparison is never ready when the answer begins.
    Pending,
    /// The earlier request is never found.
    NotFound,
    /// There is never a verdict.
    Unavailable,
}
