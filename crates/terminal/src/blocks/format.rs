//! Figures as the face shows them: tokens, dollars, times, shares.

use std::time::Duration;

/// A number with separators: `1,234,567`.
pub fn count(number: usize) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A number in at most five columns: `240`, `8.1k`, `47k`, `1.2M`.
pub fn short_count(number: usize) -> String {
    match number {
        0..1_000 => number.to_string(),
        1_000..9_950 => format!("{:.1}k", number as f64 / 1e3),
        9_950..999_500 => format!("{:.0}k", number as f64 / 1e3),
        _ => format!("{:.1}M", number as f64 / 1e6),
    }
}

/// An amount of money with the digits that matter: `$2.73`, `$0.48`, `$0.031`, `$0.0096`, `$0`.
pub fn dollars(amount: f64) -> String {
    let text = match amount.abs() {
        0.0 => return "$0".to_owned(),
        size if size >= 0.9995 => format!("{amount:.2}"),
        size if size >= 0.0995 => {
            let text = format!("{amount:.3}");
            text.strip_suffix('0').map(str::to_owned).unwrap_or(text)
        }
        size if size >= 0.00995 => format!("{amount:.3}"),
        size if size >= 0.000_095 => format!("{amount:.4}"),
        _ => format!("{amount:.6}"),
    };
    match text.strip_prefix('-') {
        Some(text) => format!("-${text}"),
        None => format!("${text}"),
    }
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
        assert_eq!([0, 999, 1_000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(
            [240, 8_120, 9_960, 47_490, 1_200_000].map(short_count),
            ["240", "8.1k", "10k", "47k", "1.2M"]
        );
        let amounts = [0.0, 2.73, 0.48, 0.119, 0.01, 0.0305, 0.0096, 0.00003, -0.5, 0.9999, 0.0999];
        let expected = [
            "$0",
            "$2.73",
            "$0.48",
            "$0.119",
            "$0.010",
            "$0.030",
            "$0.0096",
            "$0.000030",
            "-$0.50",
            "$1.00",
            "$0.10",
        ];
        assert_eq!(amounts.map(dollars), expected);
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
