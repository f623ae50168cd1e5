//! Renders a document as one self-contained HTML page: no scripts, nothing loaded, light or dark as
//! the reader's system is.

use super::{Document, Section, SectionPart, data_uri, escape_html, markdown_html};

/// Only the page's own style and images may be used: a session holds foreign text.
const POLICY: &str = "default-src 'none'; img-src data:; style-src 'unsafe-inline'";

const STYLE: &str = "
:root { color-scheme: light dark; --line: #d0d0d0; --shade: #f4f4f4; --quiet: #666; --user: #2a6; --assistant: #36c; }
@media (prefers-color-scheme: dark) { :root { --line: #444; --shade: #222; --quiet: #999; --user: #5c8; --assistant: #7af; } }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0 1rem; color: var(--quiet); } dd { margin: 0; }
section { border-left: 3px solid var(--line); padding-left: 1rem; margin: 1.5rem 0; }
section.user { border-color: var(--user); } section.assistant { border-color: var(--assistant); }
h2 { font-size: 1rem; margin: 0 0 .5rem; } time, .after { color: var(--quiet); font-weight: normal; font-size: .85rem; }
.label { border: 1px solid var(--line); border-radius: 4px; padding: 0 .3rem; font-size: .85rem; }
.words { overflow-wrap: anywhere; } section.user .words p { white-space: pre-line; } .words h3, .words h4 { font-size: 1.05rem; }
.wide { overflow-x: auto; } table { border-collapse: collapse; } th, td { border: 1px solid var(--line); padding: .2rem .5rem; text-align: left; } .right { text-align: right; } .center { text-align: center; }
blockquote { border-left: 3px solid var(--line); margin: .5rem 0; padding-left: .8rem; color: var(--quiet); } code { background: var(--shade); font-size: .9em; }
pre { background: var(--shade); padding: .6rem; overflow-x: auto; font-size: .85rem; white-space: pre; }
summary { cursor: pointer; color: var(--quiet); } img { max-width: 100%; } dd, h1, h2 { overflow-wrap: anywhere; min-width: 0; }
@media (max-width: 40rem) { body { margin: 1rem auto; padding: 0 .6rem; } section { padding-left: .6rem; } dl { grid-template-columns: 1fr; } dd { margin-bottom: .3rem; } ul, ol { padding-left: 1.3rem; } }
";

/// Renders the whole page.
pub(super) fn render(document: &Document<'_>) -> String {
    let title = escape_html(&document.title);
    let facts: String = document
        .facts
        .iter()
        .map(|(name, value)| format!("<dt>{name}</dt><dd>{}</dd>\n", escape_html(value)))
        .collect();
    let sections: String = document.sections.iter().map(section).collect();
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n\
         <style>{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n<dl>\n{facts}</dl>\n{sections}</body>\n</html>\n"
    )
}

fn section(section: &Section<'_>) -> String {
    let Section { heading, role, id, time, label, after, parts } = section;
    let after = after.map_or_else(String::new, |after| {
        format!("<p class=\"after\">another branch, after <a href=\"#{0}\">{0}</a></p>\n", escape_html(after))
    });
    let label = label
        .map_or_else(String::new, |label| format!(" <span class=\"label\">{}</span>", escape_html(label)));
    let time = time.map_or_else(String::new, |time| format!(" <time>{time}</time>"));
    let parts: String = parts.iter().map(part).collect();
    let (heading, id) = (escape_html(heading), escape_html(id));
    format!(
        "{after}<section class=\"{role}\" id=\"{id}\">\n<h2>{heading}{label}{time}</h2>\n{parts}</section>\n"
    )
}

fn part(part: &SectionPart<'_>) -> String {
    match part {
        SectionPart::Text(text) => format!("<div class=\"words\">\n{}</div>\n", markdown_html::render(text)),
        SectionPart::Collapsed { title, text } => format!(
            "<details><summary>{}</summary>\n<pre>{}</pre>\n</details>\n",
            escape_html(title),
            escape_html(text)
        ),
        SectionPart::Image(image) => match data_uri(image) {
            Some(uri) => format!("<img alt=\"image\" src=\"{uri}\">\n"),
            None => "<p>(an image that cannot be shown)</p>\n".into(),
        },
    }
}
