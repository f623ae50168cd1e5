mod long_session;
mod rules; // one small case per rule

use super::TierChangeReason;

/// The reason without its figures.
fn kind(reason: TierChangeReason) -> String {
    let written = serde_json::to_string(&reason).unwrap();
    written.split('"').nth(1).unwrap().to_owned()
}

/// Every reason there is.
const REASONS: [&str; 8] =
    ["new", "changed", "gone", "file_opened", "file_closed", "stable", "under_target", "older_fell"];
