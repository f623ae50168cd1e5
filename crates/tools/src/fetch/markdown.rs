//! A page as Markdown: what it says, without what it looks like.

use std::borrow::Cow;

use reqwest::Url;

use super::html::{Attributes, Token, decoded, tokens};

/// The most bytes of Markdown that are made of one page.
const LIMIT: usize = 8 * 1024 * 1024;

/// How deep lists and quotations are shown.
const DEPTH: usize = 6;

/// Elements that are not what a page is read for.
const ASIDE: [&str; 9] =
    ["nav", "footer", "svg", "template", "noscript", "select", "button", "dialog", "math"];

/// Elements that stand on lines of their own.
const BLOCKS: [&str; 29] = [
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

/// What a page says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Markdown {
    pub title: Option<String>,
    pub text: String,
}

/// Turns a page into Markdown. Links become whole addresses, meant from `base`.
pub(super) fn markdown(html: &str, base: &Url) -> Markdown {
    let page = write(html, base, &ASIDE);
    if page.text.is_empty() { write(html, base, &[]) } else { page }
}

fn write(html: &str, base: &Url, aside: &[&str]) -> Markdown {
    let mut writer = Writer { base: Some(base), ..Writer::default() };
    let mut skipped: Option<(String, usize)> = None;
    for token in tokens(html) {
        // What is left out ends with its own end tag, elements of the same name within it counted.
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
            Token::Open(name, attributes) => writer.open(&name, &attributes),
            Token::Close(name) => writer.close(&name),
            Token::Text(text) => writer.text(text),
        }
        if writer.out.len() > LIMIT {
            break;
        }
    }
    writer.finish()
}

#[derive(Default)]
struct Writer<'a> {
    base: Option<&'a Url>,
    out: String,
    title: Option<String>,
    /// The raw element we are in.
    raw: Option<String>,
    /// The marks of emphasis that are open, and where each begins.
    marks: Vec<(&'static str, usize)>,
    link: Option<(String, usize)>,
    /// The number of the next entry of each open list; none where entries have none.
    lists: Vec<Option<u32>>,
    quotes: usize,
    preformatted: usize,
    /// Tables within tables are layout, not tables.
    tables: usize,
    /// How many cells the current row has; none outside of one.
    cells: Option<usize>,
    rows: usize,
    space: bool,
}

impl Writer<'_> {
    fn open(&mut self, name: &str, attributes: &Attributes<'_>) {
        match name {
            "title" | "script" | "style" | "textarea" | "iframe" | "noembed" | "noframes" | "xmp" => {
                self.raw = Some(name.to_owned());
            }
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                self.block();
                let level = name.as_bytes()[1] - b'0';
                self.put(&("#".repeat(level.into()) + " "));
            }
            "br" => self.line(),
            "hr" => {
                self.block();
                self.put("---");
                self.block();
            }
            "strong" | "b" => self.mark("**"),
            "em" | "i" | "cite" => self.mark("*"),
            "del" | "s" => self.mark("~~"),
            "code" | "kbd" | "samp" | "tt" => self.mark("`"),
            "a" => {
                self.end_link();
                self.link =
                    attributes.get("href").and_then(|href| Some((self.address(&href)?, self.out.len())));
            }
            "img" => {
                let alt = attributes.get("alt").unwrap_or_default();
                let address = attributes.get("src").and_then(|source| self.address(&source));
                if let (false, Some(address)) = (alt.trim().is_empty(), address) {
                    self.word(&format!("![{}]({address})", alt.trim()));
                }
            }
            "ul" | "ol" | "menu" => {
                self.around_list();
                let start = attributes.get("start").and_then(|start| start.parse().ok()).unwrap_or(1);
                self.lists.push((name == "ol").then_some(start));
            }
            "li" => self.entry(),
            "blockquote" => {
                self.block();
                self.quotes += 1;
            }
            "pre" => {
                self.block();
                self.put("```");
                self.preformatted += 1;
                self.line();
            }
            "table" => {
                self.tables += 1;
                self.block();
                self.rows = 0;
            }
            "tr" if self.tables == 1 => {
                self.line();
                self.cells = Some(0);
            }
            "td" | "th" if self.tables == 1 && self.cells.is_some() => {
                self.end_marks();
                let first = self.cells == Some(0);
                self.cells = self.cells.map(|cells| cells + 1);
                self.put(if first { "| " } else { " | " });
            }
            "tr" | "td" | "th" => self.line(),
            name if BLOCKS.contains(&name) => self.block(),
            _ => {}
        }
    }

    fn close(&mut self, name: &str) {
        match name {
            name if self.raw.as_deref() == Some(name) => self.raw = None,
            "strong" | "b" => self.end_mark("**"),
            "em" | "i" | "cite" => self.end_mark("*"),
            "del" | "s" => self.end_mark("~~"),
            "code" | "kbd" | "samp" | "tt" => self.end_mark("`"),
            "a" => self.end_link(),
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => self.block(),
            "ul" | "ol" | "menu" => {
                self.lists.pop();
                self.around_list();
            }
            "li" => self.line(),
            "blockquote" => {
                self.block();
                self.quotes = self.quotes.saturating_sub(1);
            }
            "pre" if self.preformatted > 0 => {
                self.line();
                self.preformatted -= 1;
                self.put("```");
                self.block();
            }
            "tr" if self.tables == 1 => self.end_row(),
            "table" => {
                self.end_row();
                self.tables = self.tables.saturating_sub(1);
                self.block();
            }
            name if BLOCKS.contains(&name) => self.block(),
            _ => {}
        }
    }

    fn text(&mut self, text: &str) {
        match self.raw.as_deref() {
            Some("title") => {
                let title = decoded(text).split_whitespace().collect::<Vec<_>>().join(" ");
                self.title = self.title.take().or(Some(title)).filter(|title| !title.is_empty());
            }
            Some("textarea") | None if self.preformatted > 0 => self.verbatim(&decoded(text)),
            Some("textarea") | None => {
                let text = decoded(text);
                self.space |= text.starts_with(char::is_whitespace);
                for word in text.split_whitespace() {
                    // In a table's row, a bar would end the cell.
                    let in_row = self.cells.is_some() && word.contains('|');
                    let word =
                        if in_row { Cow::Owned(word.replace('|', "\\|")) } else { Cow::Borrowed(word) };
                    self.word(&word);
                    self.space = true;
                }
                self.space = !self.out.is_empty() && text.ends_with(char::is_whitespace);
            }
            Some(_) => {}
        }
    }

    fn verbatim(&mut self, text: &str) {
        for line in text.split_inclusive('\n') {
            self.put(line.trim_end_matches(['\n', '\r']));
            if line.ends_with('\n') {
                self.out.push('\n');
            }
        }
    }

    /// A word, with the space before it that is due.
    fn word(&mut self, word: &str) {
        if std::mem::take(&mut self.space) && !self.at_line_start() && !self.out.ends_with(' ') {
            self.out.push(' ');
        }
        self.put(word);
    }

    /// Puts text out as it is; a new line begins with the signs of what it is in.
    fn put(&mut self, text: &str) {
        if self.at_line_start() && !text.is_empty() {
            self.out.push_str(&"> ".repeat(self.quotes.min(DEPTH)));
            if self.preformatted == 0 && !self.lists.is_empty() {
                self.out.push_str(&"  ".repeat(self.lists.len().min(DEPTH) - 1));
            }
        }
        self.out.push_str(text);
    }

    /// A list stands after an empty line, one within a list does not.
    fn around_list(&mut self) {
        match self.lists.is_empty() {
            true => self.block(),
            false => self.line(),
        }
    }

    fn entry(&mut self) {
        self.line();
        let sign = match self.lists.last_mut() {
            Some(Some(number)) => {
                *number = number.saturating_add(1);
                format!("{}. ", *number - 1)
            }
            _ => "- ".to_owned(),
        };
        self.put(&sign);
    }

    fn at_line_start(&self) -> bool {
        self.out.is_empty() || self.out.ends_with('\n')
    }

    /// Ends the line, if there is anything in it. In a row of a table, lines are spaces.
    fn line(&mut self) {
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

    /// Ends the paragraph: what follows stands after an empty line.
    fn block(&mut self) {
        // What an entry of a list begins with stays on its line.
        if self.out.ends_with("- ") || self.out.ends_with(". ") && !self.lists.is_empty() {
            return;
        }
        self.line();
        // The entries of a list stand close together.
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
        self.put(" |");
        self.line();
        self.rows += 1;
        if self.rows == 1 {
            self.put(&("|".to_owned() + &" --- |".repeat(cells)));
            self.line();
        }
    }

    fn mark(&mut self, sign: &'static str) {
        if self.preformatted == 0 && !self.marks.iter().any(|(open, _)| *open == sign) {
            self.word(sign);
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

    /// Ends the innermost emphasis; one that is empty leaves no trace.
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

    /// A whole address, if it leads somewhere else.
    fn address(&self, address: &str) -> Option<String> {
        let address = address.trim();
        if address.is_empty() || address.starts_with('#') {
            return None;
        }
        let whole = self.base?.join(address).ok()?;
        matches!(whole.scheme(), "http" | "https" | "mailto").then(|| whole.to_string())
    }

    fn finish(mut self) -> Markdown {
        self.end_row();
        self.line();
        Markdown { title: self.title, text: self.out.trim_matches('\n').to_owned() }
    }
}

#[cfg(test)]
mod tests;
