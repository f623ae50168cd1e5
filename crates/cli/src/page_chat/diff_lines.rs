//! A stored diff as lines of the page, and its size.

use hardpan_terminal::text::escape;
use hardpan_terminal::theme::{Role, Theme};
use ratatui::text::{Line, Span};

/// Added and removed lines of a unified diff.
pub fn line_counts(diff: &str) -> (usize, usize) {
    let count = |sign: char| body(diff).filter(|line| line.starts_with(sign)).count();
    (count('+'), count('-'))
}

/// The lines of a unified diff, without its heads.
fn body(diff: &str) -> impl Iterator<Item = &str> {
    diff.lines().filter(|line| !line.starts_with("+++ ") && !line.starts_with("--- "))
}

/// A unified diff with the numbers of its lines.
pub fn diff_lines(diff: &str, theme: &Theme) -> Vec<Line<'static>> {
    let (mut old, mut new) = (1, 1);
    let mut lines = Vec::new();
    for line in body(diff) {
        if let Some(start) = hunk_start(line) {
            if !lines.is_empty() {
                let gap = format!("     {}", theme.glyphs.gap);
                lines.push(Line::styled(gap, theme.style(Role::Quiet)));
            }
            (old, new) = start;
            continue;
        }
        let (sign, text) = line.split_at_checked(1).unwrap_or((" ", ""));
        let (number, role) = match sign {
            "+" => (new, Role::Good),
            "-" => (old, Role::Danger),
            _ => (new, Role::Text),
        };
        old += usize::from(sign != "+");
        new += usize::from(sign != "-");
        let style = theme.style(role);
        lines.push(Line::from(vec![
            Span::styled(format!("{number:>6} "), theme.style(Role::Quiet)),
            Span::styled(format!("{sign} "), style),
            Span::styled(escape(text).into_owned(), style),
        ]));
    }
    lines
}

/// The first lines of a hunk, from `@@ -12,4 +12,6 @@`.
fn hunk_start(line: &str) -> Option<(usize, usize)> {
    let (old, new) = line.strip_prefix("@@ -")?.split_once(" +")?;
    let first = |range: &str| range.split([',', ' ']).next().and_then(|number| number.parse().ok());
    Some((first(old)?, first(new)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_the_numbers_of_their_file() {
        let diff = "--- a\n+++ b\n@@ -41,3 +41,4 @@\n if\n-old\n+new\n+more\n }\n@@ -90 +91 @@\n-x\n+y\n";
        let lines: Vec<String> =
            diff_lines(diff, &Theme::default()).iter().map(ToString::to_string).collect();
        let expected = [
            "    41   if",
            "    42 - old",
            "    42 + new",
            "    43 + more",
            "    44   }",
            "     ⋮",
            "    90 - x",
            "    91 + y",
        ];
        assert_eq!((lines, line_counts(diff)), (expected.map(str::to_owned).to_vec(), (3, 2)));
    }
}
