use jiff::Timestamp;

/// The current time.
#[allow(clippy::disallowed_methods, reason = "this is the edge where the clock enters")]
pub fn now() -> Timestamp {
    Timestamp::now()
}
