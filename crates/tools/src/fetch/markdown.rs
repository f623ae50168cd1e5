//! [`html_to_markdown`]: the content of a web page as Markdown.

use std::borrow::Cow;

use reqwest::Url;

use super::html::{Attributes, Token, decode_entities, tokens};

/// The most bytes of Markdown that one page becomes.
const MAX_MARKDOWN_BYTES: usize = 8 * 1024 * 1024;

/// The deepest nesting of lists and quotations that is shown.
const MAX_DEPTH: usize = 6;

/// Elements that are left out with everything in them, unless nothing would remain of the page.
const SKIPPED_ELEMENTS: [&str; 9] =
    ["nav", "footer", "svg", "template", "noscript", "select", "button", "dialog", "math"];

/// Elements that begin and end a paragraph.
const BLOCK_ELEMENTS: [&str; 29] = [
    "address",
    "article",
    "aside",
    "body",
    "caption",
    "dd",
    "details",
    "div",
    "dl",
    "dt",
    "fieldset",
    "figcaption",
    "figure",
    "form",
    "header",
    "hgroup",
    "html",
    "legend",
    "main",
    "p",
    "section",
    "summary",
    "table",
    "tbody",
    "tfoot",
    "thead",
    "center",
    "head",
    "option",
];

/// A page as Markdown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct MarkdownPage {
    pub title: Option<String>,
    pub text: String,
}

/// Turns a page into Markdown. Links become absolute, resolved against `base`.
pub(super) fn html_to_markdown(html: &str, base: &Url) -> MarkdownPage {
    let page = write_page(html, base, &SKIPPED_ELEMENTS);
    if page.text.is_empty() { write_page(html, base, &[]) } else { page }
}

fn write_page(html: &str, base: &Url, aside: &[&str]) -> MarkdownPage {
    let mut writer = MarkdownWriter { base: Some(base), ..MarkdownWriter::default() };
    let mut skipped: Option<(String, usize)> = None;
    for token in tokens(html) {
        // A skipped element ends with its own end tag; nested ones of the same name are counted.
        if let Some((name, depth)) = &mut skipped {
            match &token {
                Token::Open(inner, _) if inner == name => *depth += 1,
                Token::Close(inner) if inner == name => *depth -= 1,
                _ => {}
            }
            if *depth == 0 {
                skipped = None;
            }
            continue;
        }
        match token {
            Token::Open(name, _) if aside.contains(&&*name) => skipped = Some((name, 1)),
            Token::Open(name, attributes) => writer.open_element(&name, &attributes),
            Token::Close(name) => writer.close_element(&name),
            Token::Text(text) => writer.push_page_text(text),
        }
        if writer.out.len() > MAX_MARKDOWN_BYTES {
            break;
        }
    }
    writer.finish()
}

#[derive(Default)]
struct MarkdownWriter<'a> {
    base: Option<&'a Url>,
    out: String,
    title: Option<String>,
    /// The name of the open element whose content is not HTML, such as `script`.
    raw: Option<String>,
    /// The open marks of emphasis, and where in `out` the text of each begins.
    marks: Vec<(&'static str, usize)>,
    link: Option<(String, usize)>,
    /// For each open list the number of its next item; `None` for unordered lists.
    lists: Vec<Option<u32>>,
    quotes: usize,
    preformatted: usize,
    /// How many tables are open. Only the outermost is written as a table: nested ones are page
    /// layout.
    tables: usize,
    /// How many cells the current row has so far. `None` outside of a row.
    cells: Option<usize>,
    rows: usize,
    space: bool,
}

impl MarkdownWriter<'_> {
    fn open_element(&mut self, name: &str, attributes: &Attributes<'_>) {
        match name {
            "title" | "script" | "style" | "textarea" | "iframe" | "noembed" | "noframes" | "xmp" => {
                self.raw = Some(name.to_owned());
            }
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                self.end_paragraph();
                let level = name.as_bytes()[1] - b'0';
                self.push_text(&("#".repeat(level.into()) + " "));
            }
            "br" => self.end_line(),
            "hr" => {
                self.end_paragraph();
                self.push_text("---");
                self.end_paragraph();
            }
            "strong" | "b" => self.open_mark("**"),
            "em" | "i" | "cite" => self.open_mark("*"),
            "del" | "s" => self.open_mark("~~"),
            "code" | "kbd" | "samp" | "tt" => self.open_mark("`"),
            "a" => {
                self.end_link();
                self.link =
                    attributes.get("href").and_then(|href| Some((self.absolute_url(&href)?, self.out.len())));
            }
            "img" => {
                let alt = attributes.get("alt").unwrap_or_default();
                let address = attributes.get("src").and_then(|source| self.absolute_url(&source));
                if let (false, Some(address)) = (alt.trim().is_empty(), address) {
                    self.push_word(&format!("![{}]({address})", alt.trim()));
                }
            }
            "ul" | "ol" | "menu" => {
                self.separate_list();
                let start = attributes.get("start").and_then(|start| start.parse().ok()).unwrap_or(1);
                self.lists.push((name == "ol").then_some(start));
            }
            "li" => self.begin_list_item(),
            "blockquote" => {
                self.end_paragraph();
                self.quotes += 1;
            }
            "pre" => {
                self.end_paragraph();
                self.push_text("```");
                self.preformatted += 1;
                self.end_line();
            }
            "table" => {
                self.tables += 1;
                self.end_paragraph();
                self.rows = 0;
            }
            "tr" if self.tables == 1 => {
                self.end_line();
                self.cells = Some(0);
            }
            "td" | "th" if self.tables == 1 && self.cells.is_some() => {
                self.end_marks();
                let first = self.cells == Some(0);
                self.cells = self.cells.map(|cells| cells + 1);
                self.push_text(if first { "| " } else { " | " });
            }
            "tr" | "td" | "th" => self.end_line(),
            name if BLOCK_ELEMENTS.contains(&name) => self.end_paragraph(),
            _ => {}
        }
    }

    fn close_element(&mut self, name: &str) {
        match name {
            name if self.raw.as_deref() == Some(name) => self.raw = None,
            "strong" | "b" => self.end_mark("**"),
            "em" | "i" | "cite" => self.end_mark("*"),
            "del" | "s" => self.end_mark("~~"),
            "code" | "kbd" | "samp" | "tt" => self.end_mark("`"),
            "a" => self.end_link(),
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => self.end_paragraph(),
            "ul" | "ol" | "menu" => {
                self.lists.pop();
                self.separate_list();
            }
            "li" => self.end_line(),
            "blockquote" => {
                self.end_paragraph();
                self.quotes = self.quotes.saturating_sub(1);
            }
            "pre" if self.preformatted > 0 => {
                self.end_line();
                self.preformatted -= 1;
                self.push_text("```");
                self.end_paragraph();
            }
            "tr" if self.tables == 1 => self.end_row(),
            "table" => {
                self.end_row();
                self.tables = self.tables.saturating_sub(1);
                self.end_paragraph();
            }
            name if BLOCK_ELEMENTS.contains(&name) => self.end_paragraph(),
            _ => {}
        }
    }

    fn push_page_text(&mut self, text: &str) {
        match self.raw.as_deref() {
            Some("title") => {
                let title = decode_entities(text).split_whitespace().collect::<Vec<_>>().join(" ");
                self.title = self.title.take().or(Some(title)).filter(|title| !title.is_empty());
            }
            Some("textarea") | None if self.preformatted > 0 => self.push_verbatim(&decode_entities(text)),
            Some("textarea") | None => {
                let text = decode_entities(text);
                self.space |= text.starts_with(char::is_whitespace);
                for word in text.split_whitespace() {
                    // A bar would end the table cell.
                    let in_row = self.cells.is_some() && word.contains('|');
                    let word =
                        if in_row { Cow::Owned(word.replace('|', "\\|")) } else { Cow::Borrowed(word) };
                    self.push_word(&word);
                    self.space = true;
                }
                self.space = !self.out.is_empty() && text.ends_with(char::is_whitespace);
            }
            Some(_) => {}
        }
    }

    fn push_verbatim(&mut self, text: &str) {
        for line in text.split_inclusive('\n') {
            self.push_text(line.trim_end_matches(['\n', '\r']));
            if line.ends_with('\n') {
                self.out.push('\n');
            }
        }
    }

    /// Writes a word, with a space before it where one is pending.
    fn push_word(&mut self, word: &str) {
        if std::mem::take(&mut self.space) && !self.at_line_start() && !self.out.ends_with(' ') {
            self.out.push(' ');
        }
        self.push_text(word);
    }

    /// Writes text as it is. On a new line, the quotation marks and indentation of its context come
    /// first.
    fn push_text(&mut self, text: &str) {
        if self.at_line_start() && !text.is_empty() {
            self.out.push_str(&"> ".repeat(self.quotes.min(MAX_DEPTH)));
            if self.preformatted == 0 && !self.lists.is_empty() {
                self.out.push_str(&"  ".repeat(self.lists.len().min(MAX_DEPTH) - 1));
            }
        }
        self.out.push_str(text);
    }

    /// Separates a list from what surrounds it: by an empty line, or a line break within another
    /// list.
    fn separate_list(&mut self) {
        match self.lists.is_empty() {
            true => self.end_paragraph(),
            false => self.end_line(),
        }
    }

    fn begin_list_item(&mut self) {
        self.end_line();
        let sign = match self.lists.last_mut() {
            Some(Some(number)) => {
                *number = number.saturating_add(1);
                format!("{}. ", *number - 1)
            }
            _ => "- ".to_owned(),
        };
        self.push_text(&sign);
    }

    fn at_line_start(&self) -> bool {
        self.out.is_empty() || self.out.ends_with('\n')
    }

    /// Ends the line unless it is empty. Within a table row, a line break becomes a space.
    fn end_line(&mut self) {
        if self.cells.is_some() {
            self.space = true;
            return;
        }
        self.end_marks();
        self.space = false;
        if !self.at_line_start() {
            self.trim();
            self.out.push('\n');
        }
    }

    /// Ends the paragraph, so that what follows comes after an empty line.
    fn end_paragraph(&mut self) {
        // A paragraph at the beginning of a list item stays on its line.
        if self.out.ends_with("- ") || self.out.ends_with(". ") && !self.lists.is_empty() {
            return;
        }
        self.end_line();
        // There are no empty lines between list items.
        if self.cells.is_none()
            && self.lists.is_empty()
            && !self.out.is_empty()
            && !self.out.ends_with("\n\n")
        {
            self.out.push('\n');
        }
    }

    fn trim(&mut self) {
        self.out.truncate(self.out.trim_end_matches(' ').len());
    }

    fn end_row(&mut self) {
        let Some(cells) = self.cells else { return };
        self.end_marks();
        self.cells = None;
        if cells == 0 {
            return;
        }
        self.push_text(" |");
        self.end_line();
        self.rows += 1;
        if self.rows == 1 {
            self.push_text(&("|".to_owned() + &" --- |".repeat(cells)));
            self.end_line();
        }
    }

    fn open_mark(&mut self, sign: &'static str) {
        if self.preformatted == 0 && !self.marks.iter().any(|(open, _)| *open == sign) {
            self.push_word(sign);
            self.marks.push((sign, self.out.len()));
        }
    }

    fn end_mark(&mut self, sign: &'static str) {
        let Some(index) = self.marks.iter().rposition(|(open, _)| *open == sign) else { return };
        while self.marks.len() > index {
            self.end_last_mark();
        }
    }

    fn end_marks(&mut self) {
        self.end_link();
        while !self.marks.is_empty() {
            self.end_last_mark();
        }
    }

    /// Ends the innermost emphasis; an empty one is removed.
    fn end_last_mark(&mut self) {
        let Some((sign, start)) = self.marks.pop() else { return };
        if self.out.len() <= start {
            self.out.truncate(start - sign.len());
        } else {
            self.out.push_str(sign);
        }
    }

    fn end_link(&mut self) {
        let Some((address, start)) = self.link.take() else { return };
        let text = self.out.get(start..).unwrap_or_default();
        let text = text.trim();
        if text.is_empty() || text.contains('\n') || text.contains("](") {
            return;
        }
        let lead = if self.out[start..].starts_with(' ') { " " } else { "" };
        let link = format!("{lead}[{text}]({address})");
        self.out.truncate(start);
        self.out.push_str(&link);
    }

    /// The absolute address of a link. `None` for anchors within the page and for schemes other
    /// than http, https and mailto.
    fn absolute_url(&self, address: &str) -> Option<String> {
        let address = address.trim();
        if address.is_empty() || address.starts_with('#') {
            return None;
        }
        let whole = self.base?.join(address).ok()?;
        matches!(whole.scheme(), "http" | "https" | "mailto").then(|| whole.to_string())
    }

    fn finish(mut self) -> MarkdownPage {
        self.end_row();
        self.end_line();
        MarkdownPage { title: self.title, text: self.out.trim_matches('\n').to_owned() }
    }
}

#[cfg(test)]
mod tests;
