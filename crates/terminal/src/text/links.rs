//! Addresses that a terminal can open (OSC 8).

use ratatui::style::Modifier;
use ratatui::text::Span;

/// The address that a part of a line shows as a link; the screen makes it one. Blocks underline
/// addresses, give each a span of its own, and never break it.
pub fn link_address<'a>(span: &'a Span<'_>) -> Option<&'a str> {
    let text = span.content.as_ref();
    let is_address = ["https://", "http://"].iter().any(|scheme| text.starts_with(scheme));
    // What RFC 3986 allows, without brackets: nothing that a terminal could take for more than text.
    let is_whole = text.chars().all(|c| c.is_ascii_alphanumeric() || "-._~:/?#@!$&'()*+,;=%".contains(c));
    (is_address && is_whole && span.style.add_modifier.contains(Modifier::UNDERLINED)).then_some(text)
}

#[cfg(test)]
mod tests {
    use ratatui::style::Style;

    use super::*;

    #[test]
    fn only_whole_addresses_are_links() {
        let link = |text: &'static str| Span::styled(text, Style::new().underlined());
        assert_eq!(link_address(&link("https://example.org/a?b=c")), Some("https://example.org/a?b=c"));
        assert_eq!(link_address(&Span::raw("https://example.org")), None);
        assert_eq!(link_address(&link("https://example.org and more")), None);
        assert_eq!(link_address(&link("https://example.org/^[\\x")), None);
        assert_eq!(link_address(&link("src/fuzzy.ts")), None);
    }
}
