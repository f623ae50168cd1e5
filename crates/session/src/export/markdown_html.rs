//! [`render`]: Markdown as HTML. What the text says in HTML itself is shown as text: a session holds
//! foreign text, and nothing of it may become markup.

use pulldown_cmark::{Alignment, CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

use super::escape_html;

/// Addresses that a link may have. Others, such as `javascript:`, are shown as text.
const LINK_SCHEMES: [&str; 3] = ["https://", "http://", "mailto:"];

/// Renders Markdown as HTML that holds no markup of the text.
pub(super) fn render(text: &str) -> String {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut writer = HtmlWriter::default();
    Parser::new_ext(text, options).for_each(|event| writer.event(event));
    writer.out
}

/// Writes the events of a parser.
#[derive(Default)]
struct HtmlWriter {
    out: String,
    /// The alignments of the columns of the current table.
    columns: Vec<Alignment>,
    /// The current cell's column.
    column: usize,
    is_table_head: bool,
    /// For each open link or image, what is written at its end.
    link_ends: Vec<String>,
}

impl HtmlWriter {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => self.out += &escape_html(&text),
            Event::Code(code) => self.out += &format!("<code>{}</code>", escape_html(&code)),
            // The text's own HTML.
            Event::Html(text) | Event::InlineHtml(text) => self.out += &escape_html(&text),
            Event::SoftBreak => self.out.push('\n'),
            Event::HardBreak => self.out += "<br>\n",
            Event::Rule => self.out += "<hr>\n",
            Event::TaskListMarker(done) => self.out += if done { "☑ " } else { "☐ " },
            Event::FootnoteReference(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                self.out += &escape_html(&text);
            }
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        let text = match tag {
            Tag::Paragraph => "<p>",
            // The page's own headings are the two above.
            Tag::Heading { level, .. } => return self.out += &format!("<h{}>", (level as usize + 2).min(6)),
            Tag::BlockQuote(_) => "<blockquote>\n",
            Tag::CodeBlock(kind) => {
                let language = match &kind {
                    CodeBlockKind::Fenced(info) => info.split_whitespace().next().unwrap_or_default(),
                    CodeBlockKind::Indented => "",
                };
                return self.out += &match language {
                    "" => "<pre><code>".to_owned(),
                    language => format!("<pre title=\"{}\"><code>", escape_html(language)),
                };
            }
            Tag::List(Some(1)) => "<ol>\n",
            Tag::List(Some(first)) => return self.out += &format!("<ol start=\"{first}\">\n"),
            Tag::List(None) => "<ul>\n",
            Tag::Item => "<li>",
            Tag::Table(columns) => {
                self.columns = columns;
                "<div class=\"wide\"><table>\n"
            }
            Tag::TableHead => {
                (self.is_table_head, self.column) = (true, 0);
                "<tr>"
            }
            Tag::TableRow => {
                self.column = 0;
                "<tr>"
            }
            Tag::TableCell => return self.start_cell(),
            Tag::Emphasis => "<em>",
            Tag::Strong => "<strong>",
            Tag::Strikethrough => "<del>",
            Tag::Link { dest_url, .. } => return self.start_link(&dest_url),
            // Nothing is loaded: an image is its description and its address.
            Tag::Image { dest_url, .. } => {
                self.link_ends.push(format!(" ({})]", escape_html(&dest_url)));
                "[image: "
            }
            Tag::HtmlBlock => "<p>",
            Tag::Superscript
            | Tag::Subscript
            | Tag::FootnoteDefinition(_)
            | Tag::DefinitionList
            | Tag::DefinitionListTitle
            | Tag::DefinitionListDefinition
            | Tag::MetadataBlock(_) => "",
        };
        self.out += text;
    }

    fn end(&mut self, tag: TagEnd) {
        let text = match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => "</p>\n",
            TagEnd::Heading(level) => return self.out += &format!("</h{}>\n", (level as usize + 2).min(6)),
            TagEnd::BlockQuote(_) => "</blockquote>\n",
            TagEnd::CodeBlock => "</code></pre>\n",
            TagEnd::List(true) => "</ol>\n",
            TagEnd::List(false) => "</ul>\n",
            TagEnd::Item => "</li>\n",
            TagEnd::Table => "</table></div>\n",
            TagEnd::TableHead => {
                self.is_table_head = false;
                "</tr>\n"
            }
            TagEnd::TableRow => "</tr>\n",
            TagEnd::TableCell => {
                self.column += 1;
                if self.is_table_head { "</th>" } else { "</td>" }
            }
            TagEnd::Emphasis => "</em>",
            TagEnd::Strong => "</strong>",
            TagEnd::Strikethrough => "</del>",
            TagEnd::Link | TagEnd::Image => {
                let end = self.link_ends.pop().unwrap_or_default();
                return self.out += &end;
            }
            TagEnd::Superscript
            | TagEnd::Subscript
            | TagEnd::FootnoteDefinition
            | TagEnd::DefinitionList
            | TagEnd::DefinitionListTitle
            | TagEnd::DefinitionListDefinition
            | TagEnd::MetadataBlock(_) => "",
        };
        self.out += text;
    }

    fn start_cell(&mut self) {
        let cell = if self.is_table_head { "th" } else { "td" };
        let class = match self.columns.get(self.column) {
            Some(Alignment::Right) => " class=\"right\"",
            Some(Alignment::Center) => " class=\"center\"",
            _ => "",
        };
        self.out += &format!("<{cell}{class}>");
    }

    fn start_link(&mut self, address: &str) {
        let lower = address.to_lowercase();
        if LINK_SCHEMES.iter().any(|scheme| lower.starts_with(scheme)) {
            self.out += &format!("<a rel=\"noreferrer\" href=\"{}\">", escape_html(address));
            self.link_ends.push("</a>".to_owned());
        } else {
            self.link_ends.push(format!(" ({})", escape_html(address)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::render;

    #[test]
    fn markdown_becomes_markup() {
        let text = "# Title\n\nSome *soft* and **loud** `x < y` text,\nsecond line.\n\n- one\n- [x] two\n\n\
                    | a | b |\n|---|--:|\n| 1 | 2 |\n\n```rust\nlet x = 1 < 2;\n```\n\n> quote\n\n[home](https://example.org)";
        let expected = "<h3>Title</h3>\n<p>Some <em>soft</em> and <strong>loud</strong> <code>x &lt; y</code> text,\n\
             second line.</p>\n<ul>\n<li>one</li>\n<li>☑ two</li>\n</ul>\n\
             <div class=\"wide\"><table>\n<tr><th>a</th><th class=\"right\">b</th></tr>\n\
             <tr><td>1</td><td class=\"right\">2</td></tr>\n</table></div>\n\
             <pre title=\"rust\"><code>let x = 1 &lt; 2;\n</code></pre>\n<blockquote>\n<p>quote</p>\n</blockquote>\n\
             <p><a rel=\"noreferrer\" href=\"https://example.org\">home</a></p>\n";
        assert_eq!(render(text), expected);
    }

    #[test]
    fn nothing_of_the_text_is_markup() {
        let texts = [
            "<script>alert(1)</script>",
            "a <b onclick=\"x\">b</b>",
            "[x](javascript:alert(1))",
            "[x](<JAVASCRIPT:alert(1)>)",
            "![x](https://example.org/pixel.png \"t\")",
            "[x](https://example.org/\"onmouseover=alert(1)//)",
            "```\"><script>\n</code></pre><script>\n```",
            "<!-- <img src=x onerror=y> -->",
            "| <i> |\n|---|\n| </table><script> |",
            "&lt;script&gt; &#60;script&#62;",
            "<https://example.org/\"><script>>",
        ];
        for text in texts {
            let page = render(text);
            for foreign in ["<script", "<b ", "<i>", "<img", "<!--", "href=\"javascript", "href=\"JAVASCRIPT"]
            {
                assert!(!page.contains(foreign), "{text}: {page}");
            }
            // Every attribute is ours: no quote of the text ends one.
            assert!(!page.contains("\"onmouseover") && !page.contains("onclick=\""), "{text}: {page}");
        }
    }
}
