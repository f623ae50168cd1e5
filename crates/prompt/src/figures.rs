//! Figures for people: tokens and dollars, written the same way everywhere.

/// A number with separators: `49,120`.
pub fn format_number(number: u64) -> String {
    let digits = number.to_string();
    let mut written = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            written.push(',');
        }
        written.push(digit);
    }
    written
}

/// A number in at most five columns: `240`, `8.1k`, `47k`, `1.2M`.
pub fn format_short_number(number: u64) -> String {
    match number {
        0..1_000 => number.to_string(),
        1_000..9_950 => format!("{:.1}k", number as f64 / 1e3),
        9_950..999_500 => format!("{:.0}k", number as f64 / 1e3),
        _ => format!("{:.1}M", number as f64 / 1e6),
    }
}

/// An amount of money with the digits that matter: `$2.73`, `$0.48`, `$0.031`, `$0.0096`, `$0`.
pub fn format_dollars(amount: f64) -> String {
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

/// What was paid, and what the answers of a simulator would have cost, if there are any.
pub fn format_paid(paid: f64, would_cost: f64) -> String {
    match would_cost {
        0.0 => format_dollars(paid),
        would_cost if paid == 0.0 => format!("$0 (would be {})", format_dollars(would_cost)),
        would_cost => format!("{} (and simulated {})", format_dollars(paid), format_dollars(would_cost)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_the_digits_that_matter() {
        assert_eq!(
            [0, 999, 1000, 49_120, 1_234_567].map(format_number),
            ["0", "999", "1,000", "49,120", "1,234,567"]
        );
        assert_eq!(
            [240, 8_120, 9_960, 47_490, 1_200_000].map(format_short_number),
            ["240", "8.1k", "10k", "47k", "1.2M"]
        );
        let amounts = [0.0, 12.3, 2.73, 0.48, 0.119, 0.01, 0.0305, 0.0096, 0.00003, -0.5, 0.9999, 0.0999];
        let expected = [
            "$0",
            "$12.30",
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
        assert_eq!(amounts.map(format_dollars), expected);
        assert_eq!(
            [format_paid(0.2, 0.0), format_paid(0.0, 0.07), format_paid(0.2, 0.07)],
            ["$0.20", "$0 (would be $0.070)", "$0.20 (and simulated $0.070)"]
        );
    }
}
