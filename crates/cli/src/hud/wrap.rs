//! [`wrap`] breaks text into lines of a given width without losing any of it.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Breaks each line into lines of at most `room` columns. Lines that fit stay as they are; others
/// break at blanks, and words that are too long break anywhere.
pub fn wrap(text: &str, room: usize) -> String {
    text.lines().flat_map(|line| split_line(line, " ", room)).map(|line| line + "\n").collect()
}

/// Splits a line after separators into pieces of at most `room` columns; at least one piece.
pub fn split_line(line: &str, separator: &str, room: usize) -> Vec<String> {
    split_keeping_blanks(line, separator, room).iter().map(|line| line.trim_end().to_owned()).collect()
}

/// Like [`split_line`], but keeps the blanks at the ends of the pieces.
fn split_keeping_blanks(line: &str, separator: &str, room: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for part in line.split_inclusive(separator) {
        let Some(last) = lines.last_mut() else { continue };
        if last.width() + part.trim_end().width() <= room {
            last.push_str(part);
            continue;
        }
        // Blanks before a word that moved to the next line are not a line of their own.
        if last.trim().is_empty() {
            lines.pop();
        }
        let finer =
            if separator == " " { split_word(part, room) } else { split_keeping_blanks(part, " ", room) };
        lines.extend(finer);
    }
    lines
}

/// Splits a word into pieces of at most `room` columns; a wider character is its own piece.
fn split_word(word: &str, room: usize) -> Vec<String> {
    let mut pieces = vec![String::new()];
    for c in word.chars() {
        match pieces.last_mut() {
            Some(piece) if piece.is_empty() || c == ' ' || piece.width() + c.width().unwrap_or(0) <= room => {
                piece.push(c);
            }
            _ => pieces.push(c.into()),
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_stays_as_it_is() {
        assert_eq!(wrap("a  1\n\n  b  2\n", 6), "a  1\n\n  b  2\n");
        assert_eq!(split_line("", " ", 6), [""]);
    }

    #[test]
    fn a_sentence_goes_on_in_the_next_line() {
        assert_eq!(wrap("one two three four", 9), "one two\nthree\nfour\n");
        assert_eq!(wrap("one two three four", 13), "one two three\nfour\n");
    }

    #[test]
    fn a_word_that_is_too_long_is_parted_and_no_character_is_lost() {
        assert_eq!(wrap("a verylongword b", 5), "a\nveryl\nongwo\nrd b\n");
        assert_eq!(wrap("漢字漢字", 5), "漢字\n漢字\n");
        assert_eq!(wrap("漢字", 1), "漢\n字\n");
    }

    #[test]
    fn a_list_is_parted_at_its_commas_before_its_blanks() {
        assert_eq!(split_line("one file, two files", ", ", 12), ["one file,", "two files"]);
        assert_eq!(split_line("working directory, clock", ", ", 10), ["working", "directory,", "clock"]);
        assert_eq!(split_line("working directory, clock", ", ", 16), ["working", "directory, clock"]);
    }
}
