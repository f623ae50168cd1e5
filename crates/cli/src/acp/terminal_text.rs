//! [`TerminalText`]: from the visible end of an output, told anew each time, to what a terminal has to
//! print next.

/// Goes to the start of the line and clears it.
pub const CLEAR_LINE: &str = "\r\u{1b}[K";

/// What a terminal shows of an output.
#[derive(Debug, Default)]
pub struct TerminalText {
    shown: String,
}

impl TerminalText {
    /// The text that the terminal ends with.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// What the terminal has to print, so that it ends with this text. Line ends are those of a terminal.
    pub fn advance(&mut self, visible: &str) -> String {
        let whole_lines = self.shown.rfind('\n').map_or(0, |end| end + 1);
        let (finished, unfinished) = self.shown.split_at(whole_lines);
        let news = if let Some(rest) = visible.strip_prefix(&*self.shown) {
            rest.to_owned()
        } else if let Some(rest) = visible.strip_prefix(finished) {
            // A line that was not finished is another one now, as those of progress bars are.
            format!("{CLEAR_LINE}{rest}")
        } else {
            let clear = if unfinished.is_empty() { "" } else { CLEAR_LINE };
            match rest_after(finished, visible) {
                Some(rest) => format!("{clear}{rest}"),
                // More was printed at once than is told.
                None => format!("{clear}[…]\n{visible}"),
            }
        };
        visible.clone_into(&mut self.shown);
        news.replace('\n', "\r\n")
    }
}

/// What stands in `visible` after the lines at its beginning that were shown last: its beginning is not told
/// any more.
fn rest_after<'a>(finished: &str, visible: &'a str) -> Option<&'a str> {
    let later_lines = finished.match_indices('\n').map(|(end, _)| &finished[end + 1..]);
    later_lines.take_while(|lines| !lines.is_empty()).find_map(|lines| visible.strip_prefix(lines))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The lines of a terminal that printed this.
    fn screen(printed: &str) -> Vec<String> {
        let mut lines = vec![String::new()];
        for part in printed.replace(CLEAR_LINE, "\u{0}").split_inclusive(['\n', '\u{0}']) {
            let (text, end) = match part.strip_suffix(['\n', '\u{0}']) {
                Some(text) => (text, part.chars().last()),
                None => (part, None),
            };
            let last = lines.last_mut().unwrap();
            last.push_str(text.trim_end_matches('\r'));
            match end {
                Some('\n') => lines.push(String::new()),
                Some(_) => last.clear(),
                None => {}
            }
        }
        lines
    }

    #[test]
    fn only_what_is_new_is_printed() {
        let mut text = TerminalText::default();
        let steps = [
            ("one\n", "one\r\n"),
            ("one\n10%", "10%"),
            ("one\n20%", "\r\u{1b}[K20%"),
            ("one\n20%\ntwo\n", "\r\ntwo\r\n"),
            ("one\n20%\ntwo\n", ""),
            ("20%\ntwo\nthree", "three"),
            ("nine\n", "\r\u{1b}[K[…]\r\nnine\r\n"),
        ];
        for (visible, printed) in steps {
            assert_eq!(text.advance(visible), printed, "{visible:?}");
        }
    }

    proptest! {
        #[test]
        fn a_terminal_ends_with_what_is_visible(
            lines in prop::collection::vec("[ab%]{0,3}", 1..60), steps in prop::collection::vec(1usize..8, 1..20),
            kept in 1usize..40,
        ) {
            let (mut text, mut printed, mut at) = (TerminalText::default(), String::new(), 0);
            for step in steps {
                at = (at + step).min(lines.len());
                let visible = lines[at.saturating_sub(kept)..at].join("\n");
                printed += &text.advance(&visible);
                let wanted: Vec<&str> = visible.split('\n').collect();
                let screen = screen(&printed);
                prop_assert!(screen.len() >= wanted.len());
                prop_assert_eq!(&screen[screen.len() - wanted.len()..], &wanted[..]);
            }
        }
    }
}
