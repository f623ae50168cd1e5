mod naive; // the rules again, slow and obvious
mod rules; // one small case per rule
mod session; // two hundred responses through real requests

use super::Reason;

/// The reason without its figures.
fn kind(reason: Reason) -> String {
    let written = serde_json::to_string(&reason).unwrap();
    written.split('"').nth(1).unwrap().to_owned()
}

/// Every reason there is.
const REASONS: [&str; 8] =
    ["new", "changed", "gone", "file_opened", "file_closed", "stable", "under_target", "older_fell"];
