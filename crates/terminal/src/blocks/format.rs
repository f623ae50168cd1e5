//! Figures as the face shows them: tokens, dollars, times, shares.

use std::time::Duration;

pub use hardpan_prompt::figures::format_dollars as dollars;
use hardpan_prompt::figures::{format_number, format_short_number};

/// A number with separators: `1,234,567`.
pub fn count(number: usize) -> String {
    format_number(number as u64)
}

/// A number in at most five columns: `240`, `8.1k`, `47k`, `1.2M`.
pub fn short_count(number: usize) -> String {
    format_short_number(number as u64)
}

/// An amount of money in a column, without the sign and a leading zero: `.0046`.
pub fn column_dollars(amount: f64) -> String {
    let text = if amount >= 9.995 { format!("{amount:.2}") } else { format!("{amount:.4}") };
    text.strip_prefix('0').filter(|rest| rest.starts_with('.')).map(str::to_owned).unwrap_or(text)
}

/// A time in minutes and seconds: `0:07`, `12:30`, `1:02:05`.
pub fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes}:{seconds:02}") }
}

/// A time in one unit: `42 s`, `4 min`, `2 h`, `3 d`.
pub fn age(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds @ 60..3_600 => format!("{} min", seconds / 60),
        seconds @ 3_600..86_400 => format!("{} h", seconds / 3_600),
        seconds => format!("{} d", seconds / 86_400),
    }
}

/// A share in percent. 0 and 100 mean exactly nothing and everything.
pub fn percent(part: usize, whole: usize) -> String {
    if whole == 0 {
        return "0%".to_owned();
    }
    let share = (part as f64 * 100.0 / whole as f64).round() as usize;
    let is_partial = part > 0 && part < whole;
    format!("{}%", if is_partial { share.clamp(1, 99) } else { share })
}

/// A count with its noun: `1 file`, `4 requests`.
pub fn counted(number: usize, singular: &str, plural: &str) -> String {
    format!("{} {}", count(number), if number == 1 { singular } else { plural })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_the_digits_that_matter() {
        assert_eq!([0.0001, 0.39, 1.5, 12.0].map(column_dollars), [".0001", ".3900", "1.5000", "12.00"]);
        assert_eq!([7, 750, 3_725].map(|s| clock(Duration::from_secs(s))), ["0:07", "12:30", "1:02:05"]);
        assert_eq!(
            [48, 252, 7_300, 90_000].map(|s| age(Duration::from_secs(s))),
            ["48 s", "4 min", "2 h", "1 d"]
        );
        assert_eq!(
            [(0, 5), (1, 1000), (999, 1000), (5, 5)].map(|(a, b)| percent(a, b)),
            ["0%", "1%", "99%", "100%"]
        );
    }
}
