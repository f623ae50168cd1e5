//! What stands within a paragraph, a heading or a cell, as styled text.

use pulldown_cmark::{Event, LinkType, Options, Parser, Tag, TagEnd};
use ratatui::style::{Modifier, Style};
use ratatui::text::Span;

use crate::text::escape;
use crate::theme::{Role, Theme};

/// The text as one list of spans for each line that ends with a hard break.
pub(super) fn inline(text: &str, base: Style, theme: &Theme) -> Vec<Vec<Span<'static>>> {
    #[cfg(test)]
    super::tests::count_rendered(text.len());
    let parser = Parser::new_ext(text, Options::ENABLE_STRIKETHROUGH);
    let mut writer = InlineWriter { lines: vec![Vec::new()], styles: vec![base], links: Vec::new(), theme };
    // A definition is not part of the document for a parser, but a reader must see where a link goes.
    let mut definitions: Vec<_> = parser.reference_definitions().iter().collect();
    definitions.sort_by_key(|(_, definition)| definition.span.start);
    for (label, definition) in definitions {
        writer.write(&format!("[{label}]: "), base);
        writer.write(&definition.dest, theme.link());
        writer.break_line();
    }
    for event in parser {
        writer.event(event);
    }
    writer.lines.retain(|line| !text_of(line).trim().is_empty());
    writer.lines
}

/// The text with the marks closed that are open at its end, and without a mark that has nothing
/// behind it yet: for drawing what is still coming.
pub(super) fn complete_marks(text: &str) -> String {
    let mut text = text.trim_end().to_owned();
    let kept = text.trim_end_matches(['*', '_', '`', '~', '[']).len();
    if text[..kept].ends_with([' ', '\n']) || kept == 0 {
        text.truncate(kept);
    }
    let (mut open_code, mut strong_count) = (None, 0);
    let mut rest = text.as_str();
    while let Some(at) = rest.find(['`', '*', '\\']) {
        let mark = rest.as_bytes()[at] as char;
        let run = rest[at..].len() - rest[at..].trim_start_matches(mark).len();
        match (mark, open_code) {
            ('\\', None) => {
                let next = rest[at + 1..].chars().next().map_or(0, char::len_utf8);
                rest = &rest[at + 1 + next..];
                continue;
            }
            ('`', None) => open_code = Some(run),
            ('`', Some(length)) if length == run => open_code = None,
            ('*', None) if run >= 2 => strong_count += 1,
            _ => {}
        }
        rest = &rest[at + run..];
    }
    if let Some(length) = open_code {
        text.push_str(&"`".repeat(length));
    }
    if strong_count % 2 == 1 {
        text.push_str("**");
    }
    text
}

struct InlineWriter<'a> {
    lines: Vec<Vec<Span<'static>>>,
    /// The styles of the elements that are open, each on top of those around it.
    styles: Vec<Style>,
    /// The addresses of open links and images, and where their text begins.
    links: Vec<(String, TextPlace)>,
    theme: &'a Theme,
}

/// A place between two characters of what was written.
#[derive(Clone, Copy)]
struct TextPlace {
    line: usize,
    /// In bytes of the line's text.
    offset: usize,
}

impl InlineWriter<'_> {
    fn event(&mut self, event: Event<'_>) {
        let style = self.styles.last().copied().unwrap_or_default();
        match event {
            Event::Text(text) => self.write_text(&text, style),
            Event::Code(code) => {
                let code = if self.theme.is_colourless() { format!("`{code}`") } else { code.into_string() };
                self.write(&code, style.patch(self.theme.style(Role::Accent)));
            }
            // None after a hard break: no line begins with a blank.
            Event::SoftBreak if self.lines.last().is_some_and(Vec::is_empty) => {}
            Event::SoftBreak => self.write(" ", style),
            Event::HardBreak => self.break_line(),
            Event::Html(html) | Event::InlineHtml(html) => self.write_html(&html, style),
            Event::Rule => self.break_line(),
            Event::Start(tag) => self.start(tag, style),
            Event::End(tag) => self.end(tag),
            Event::FootnoteReference(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                self.write(&text, style);
            }
            Event::TaskListMarker(is_done) => self.write(if is_done { "[x] " } else { "[ ] " }, style),
        }
    }

    fn start(&mut self, tag: Tag<'_>, style: Style) {
        let style = match tag {
            Tag::Emphasis => style.patch(self.theme.emphasis()),
            Tag::Strong => style.add_modifier(Modifier::BOLD),
            Tag::Strikethrough => {
                if self.theme.is_colourless() {
                    self.write("~~", style);
                    style
                } else {
                    style.add_modifier(Modifier::CROSSED_OUT)
                }
            }
            Tag::Link { link_type, dest_url, .. } => {
                let is_mail = link_type == LinkType::Email;
                let address = if is_mail { format!("mailto:{dest_url}") } else { dest_url.into_string() };
                self.links.push((address, self.place()));
                style
            }
            Tag::Image { dest_url, .. } => {
                self.write("image: ", style.patch(self.theme.style(Role::Quiet)));
                self.links.push((dest_url.into_string(), self.place()));
                style
            }
            // Blocks do not occur in what is read here, except by accident: their text is kept.
            _ => {
                self.break_line();
                style
            }
        };
        self.styles.push(style);
    }

    fn end(&mut self, tag: TagEnd) {
        self.styles.pop();
        match tag {
            TagEnd::Strikethrough if self.theme.is_colourless() => {
                let style = self.styles.last().copied().unwrap_or_default();
                self.write("~~", style);
            }
            TagEnd::Link | TagEnd::Image => self.end_link(),
            _ => {}
        }
    }

    /// Adds the address of a link behind its text, unless the text is the address.
    fn end_link(&mut self) {
        let Some((address, start)) = self.links.pop() else { return };
        let text = self.text_since(start);
        let text = text.trim();
        let is_shown = text == address || format!("mailto:{text}") == address;
        if address.is_empty() || is_shown {
            return;
        }
        let style = self.styles.last().copied().unwrap_or_default();
        let is_empty = text.is_empty();
        self.write(if is_empty { "(" } else { " (" }, style.patch(self.theme.style(Role::Quiet)));
        self.write(&address, self.theme.link());
        self.write(")", style.patch(self.theme.style(Role::Quiet)));
    }

    /// Text, with the addresses in it as links.
    fn write_text(&mut self, text: &str, style: Style) {
        let mut rest = text;
        while let Some(start) = find_address(rest) {
            let end = start + address_length(&rest[start..]);
            self.write(&rest[..start], style);
            self.write(&rest[start..end], self.theme.link());
            rest = &rest[end..];
        }
        self.write(rest, style);
    }

    fn write_html(&mut self, html: &str, style: Style) {
        let tag = html.trim().trim_matches(['<', '>', '/', ' ']).to_ascii_lowercase();
        if tag == "br" {
            return self.break_line();
        }
        for (index, line) in html.trim_end_matches('\n').split('\n').enumerate() {
            if index > 0 {
                self.break_line();
            }
            self.write(line, style);
        }
        if html.ends_with('\n') {
            self.break_line();
        }
    }

    fn write(&mut self, text: &str, style: Style) {
        let Some(line) = self.lines.last_mut().filter(|_| !text.is_empty()) else { return };
        let text = escape(text);
        match line.last_mut() {
            Some(last) if last.style == style => last.content.to_mut().push_str(&text),
            _ => line.push(Span::styled(text.into_owned(), style)),
        }
    }

    fn break_line(&mut self) {
        if self.lines.last().is_some_and(|line| !line.is_empty()) {
            self.lines.push(Vec::new());
        }
    }

    fn place(&self) -> TextPlace {
        let line = self.lines.len().saturating_sub(1);
        TextPlace { line, offset: self.lines.last().map_or(0, |spans| text_of(spans).len()) }
    }

    /// What was written since a place; a hard break within it is a line end.
    fn text_since(&self, place: TextPlace) -> String {
        let lines: Vec<String> = self.lines[place.line..].iter().map(|spans| text_of(spans)).collect();
        lines.join("\n").split_off(place.offset)
    }
}

fn text_of(spans: &[Span<'_>]) -> String {
    spans.iter().map(|span| span.content.as_ref()).collect()
}

fn find_address(text: &str) -> Option<usize> {
    ["https://", "http://"].iter().filter_map(|scheme| text.find(scheme)).min()
}

/// The bytes of the address that the text begins with, without the sentence's own signs behind it.
fn address_length(text: &str) -> usize {
    let end =
        text.find(|c: char| c.is_whitespace() || matches!(c, '<' | '>' | '"' | '`')).unwrap_or(text.len());
    let mut address = text[..end].trim_end_matches(['.', ',', ';', ':', '!', '?', '\'']);
    if !address.contains('(') {
        address = address.trim_end_matches([')', '.', ',']);
    }
    address.len()
}
