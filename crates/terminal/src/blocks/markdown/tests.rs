//! Tests of the Markdown renderer.

use std::cell::Cell;

use proptest::prelude::*;
use ratatui::style::Modifier;

use super::*;
use crate::text::{is_unsafe, line_width};
use crate::theme::{Glyphs, Palette};

pub(super) fn count_rendered(bytes: usize) {
    RENDERED.set(RENDERED.get() + bytes);
}

thread_local! {
    /// Bytes that were parsed and rendered on this thread.
    static RENDERED: Cell<usize> = const { Cell::new(0) };
}

fn plain() -> Theme {
    Theme { palette: Palette::None, glyphs: &Glyphs::UNICODE }
}

fn text(lines: &[Line<'_>]) -> String {
    lines.iter().map(|line| line.to_string() + "\n").collect()
}

fn render(source: &str, width: usize) -> String {
    text(&render_markdown(source, width, &plain()))
}

const DOCUMENT: &str = "\
# Title

Some *soft* and **hard** words, `code`, ~~gone~~, a [link](https://example.org/a) and
https://example.org/b. A long line that has to be wrapped at the width of the terminal.
Things:
- first
- second item that is longer than the others and wraps
  1. nested
  2. more

     a paragraph of the nested item
- [ ] third

  ```rust
  fn main() {}
  ```

> A quotation
> of two lines
>
> - with an item

```sh
echo \"$HOME\"   # where

exit 1
```

| name | tokens | note |
|:-----|-------:|:----:|
| `a\\|b` | 1,140 | x |
| BASE | 8,940 | a longer cell |

Setext
------
1. one
1. two

***
Last line with a hard break\\
and <b>html</b>.

[ref]: https://example.org/ref
";

#[test]
fn a_document_with_everything() {
    insta::assert_snapshot!("document_80", render(DOCUMENT, 80));
    insta::assert_snapshot!("document_40", render(DOCUMENT, 40));
    insta::assert_snapshot!("document_160", render(DOCUMENT, 160));
    let ascii = Theme { palette: Palette::None, glyphs: &Glyphs::ASCII };
    assert!(text(&render_markdown(DOCUMENT, 80, &ascii)).is_ascii());
}

#[test]
fn marks_become_styles() {
    let lines = render_markdown("**bold** *soft* `code` <https://a.b>", 80, &Theme::default());
    let spans = &lines[0].spans;
    assert_eq!(lines[0].to_string(), "bold soft code https://a.b");
    assert!(spans[0].style.add_modifier.contains(Modifier::BOLD));
    assert!(spans[2].style.add_modifier.contains(Modifier::ITALIC));
    assert_eq!(spans[4].style, Theme::default().style(crate::theme::Role::Accent));
    assert_eq!(spans[6].style, Theme::default().link());
}

#[test]
fn the_text_of_a_link_may_have_a_break_in_it() {
    assert_eq!(render("[ab<br>👩\u{200d}💻](c)", 80), "ab\n👩\u{200d}💻 (c)\n");
    assert_eq!(render("[<br>c](c)", 80), "c\n");
    assert_eq!(render("a [b<br>c](b)", 80), "a b\nc (b)\n");
    assert_eq!(render("**<br>\n<br>", 80), "**\n");
    assert_eq!(render("a<br>\nb", 80), "a\nb\n");
}

#[test]
fn a_table_in_a_markdown_fence_is_a_table() {
    let table = "| a | b |\n|---|---|\n| 1 | 2 |\n";
    let bare = render(table, 80);
    assert_eq!(bare, "a  b\n─  ─\n1  2\n");
    assert_eq!(render(&format!("```markdown\n{table}```\n"), 80), bare);
    assert_eq!(render("```md\n# not a table\n```\n", 80), "  # not a table\n");
    let both = format!("```markdown\n# Title\n\n{table}```\nafter\n");
    assert_eq!(render(&both, 80), format!("Title\n\n{bare}\nafter\n"));
}

#[test]
fn a_long_table_is_printed_before_it_ends_with_the_widths_it_has() {
    let mut markdown = MarkdownRenderer::new(80, plain());
    let mut lines = markdown.push("| n | text |\n|---|---|\n");
    for n in 0..40 {
        let new = markdown.push(&format!("| {n} | row {n} |\n"));
        assert_eq!(new.is_empty(), n < MAX_OPEN_ROWS, "{n}");
        lines.extend(new);
    }
    lines.extend(markdown.push("| 40 | wider than before |\n"));
    assert_eq!(lines.len(), 2 + 40 + 3);
    assert_eq!(text(&lines[42..]), "40  wider\n    than\n    before\n");
}

#[test]
fn rows_without_a_word_part_a_table_and_do_not_end_it() {
    assert_eq!(
        render("| a | b |\n|---|---|\n| 1 | 2 |\n| | |\n| 3 | 4 |\n| ", 80),
        "a  b\n─  ─\n1  2\n\n3  4\n"
    );
    assert_eq!(render("| a | b |\n|---|---|\n| ", 80), "a  b\n─  ─\n");
    assert_eq!(render("| a | b |\n|---|---|\n| <br> |", 80), "a  b\n─  ─\n");
}

#[test]
fn wide_tables_shrink_and_then_become_lists() {
    let table = "| name | what it does | remark |\n|---|---|---|\n| alpha | does a great many things at once | none of them well |\n";
    insta::assert_snapshot!(render(table, 40), @r"
    name   what it does      remark
    ─────  ────────────────  ───────────────
    alpha  does a great      none of them
           many things at    well
           once
    ");
    insta::assert_snapshot!(render(table, 16), @r"
    name: alpha
    what it does:
    does a great
    many things at
    once
    remark: none of
    them well
    ");
}

#[test]
fn what_is_open_is_drawn_as_if_it_ended_here() {
    let mut markdown = MarkdownRenderer::new(40, Theme::default());
    let closed = markdown.push("Done.\n\n- one\n- two **bo");
    assert_eq!(text(&closed), "Done.\n");
    let tail = markdown.open_tail();
    assert_eq!(text(&tail), "\n• one\n• two bo\n");
    assert!(tail[2].spans.last().expect("a span").style.add_modifier.contains(Modifier::BOLD));
    for (source, expected) in [
        ("text\n-", "text\n"),
        ("text\n| a", "text | a\n"),
        ("a `co", "a co\n"),
        ("a **", "a\n"),
        ("```rust\nlet x", "  let x\n"),
        ("| a | b |\n|--", "| a | b |\n"),
        ("| a | b |\n|--|--|\n| 1", "a  b\n─  ─\n1\n"),
        ("##", ""),
        ("1", ""),
        ("2026 was", "2026 was\n"),
    ] {
        let mut markdown = MarkdownRenderer::new(40, Theme::default());
        assert!(markdown.push(source).is_empty(), "{source}");
        assert_eq!(text(&markdown.open_tail()), expected, "{source}");
    }
}

#[test]
fn each_piece_costs_what_it_is_long() {
    let source = DOCUMENT.repeat(50);
    RENDERED.set(0);
    let mut markdown = MarkdownRenderer::new(80, plain());
    for c in source.chars() {
        markdown.push(c.encode_utf8(&mut [0; 4]));
    }
    markdown.finish();
    assert!(RENDERED.get() <= source.len(), "{} of {}", RENDERED.get(), source.len());

    // However long a line, a paragraph or a fence is, what is drawn for a frame is bounded.
    for piece in ["word ", "word\n", "- a\n", "> a\n", "| a | b |\n"] {
        let mut markdown = MarkdownRenderer::new(80, plain());
        markdown.push("x\n");
        for _ in 0..30 {
            markdown.push(&piece.repeat(1024));
            RENDERED.set(0);
            markdown.open_tail();
            assert!(RENDERED.get() <= 2 * MAX_OPEN_BYTES, "{piece:?}");
        }
    }
}

#[test]
fn deep_nesting_ends() {
    let source = "> ".repeat(5_000) + "deep\n" + &"- ".repeat(5_000) + "deep\n";
    assert!(render(&source, 40).contains("deep"));
}

/// Pieces of Markdown, well formed or not.
fn fragments() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("\n"),
        Just("\n\n"),
        Just("# "),
        Just("- "),
        Just("  - "),
        Just("1. "),
        Just("> "),
        Just("```\n"),
        Just("```rust\n"),
        Just("```markdown\n"),
        Just("~~~\n"),
        Just("**"),
        Just("*"),
        Just("`"),
        Just("| "),
        Just("|---|---|\n"),
        Just("| a | b |\n"),
        Just("---\n"),
        Just("==="),
        Just("    "),
        Just("\t"),
        Just("[a](b)"),
        Just("[r]: http://x\n"),
        Just("<div>\n"),
        Just("<br>"),
        Just("&amp;"),
        Just("\\"),
        Just("word "),
        Just("世界"),
        Just("fn x() {"),
        Just("\r\n"),
        Just("https://example.org/x "),
        Just("\u{1b}[31m"),
        Just("\u{202e}"),
        Just("é"),
        Just("👩\u{200d}💻"),
        Just("\u{9b}"),
        Just("שלום "),
    ];
    proptest::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn how_the_source_is_cut_changes_nothing(
        source in fragments(),
        cuts in proptest::collection::vec(1_usize..9, 1..40),
        width in 10_usize..120,
    ) {
        let whole = render_markdown(&source, width, &plain());
        let mut markdown = MarkdownRenderer::new(width, plain());
        let (mut lines, mut rest) = (Vec::new(), source.as_str());
        for cut in cuts.iter().cycle() {
            let end = rest.ceil_char_boundary((*cut).min(rest.len()));
            lines.extend(markdown.push(&rest[..end]));
            markdown.open_tail();
            rest = &rest[end..];
            if rest.is_empty() {
                break;
            }
        }
        lines.extend(markdown.finish());
        prop_assert_eq!(lines, whole);
    }

    #[test]
    fn no_line_steers_the_terminal_and_no_word_is_lost(source in fragments()) {
        let lines = render_markdown(&source, 200, &plain());
        let shown = text(&lines);
        prop_assert!(!shown.replace('\n', "").contains(is_unsafe), "{:?}", shown);
        // The language of a fence is not shown.
        let is_fence = |line: &str| line.contains("```") || line.contains("~~~");
        if !source.lines().any(|line| is_fence(line) && line.contains("word")) {
            prop_assert_eq!(source.matches("word").count() , shown.matches("word").count());
        }
        prop_assert_eq!(source.matches('世').count(), shown.matches('世').count());
        prop_assert!(lines.last().is_none_or(|line| line_width(line) > 0) || source.contains("```") || source.contains("~~~"));
    }
}
