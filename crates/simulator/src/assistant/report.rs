//! The texts of the assistant's answers: a few lines, with places as `path:line`.

use super::evidence::{Definition, Evidence};
use super::hits::{SourceLine, SourceMatch, definition};
use super::question::Question;
use super::search_terms::SearchTerm;
use super::source_kind::SourceKind;

/// The most places in an answer.
const MAX_PLACES: usize = 8;
/// What a result without text is sent as.
const NO_OUTPUT: &str = "(no output)";

/// The most lines of an outline or a map.
const MAX_OUTLINE: usize = 24;
/// The most lines of an excerpt, from the definition on.
const MAX_EXCERPT: usize = 9;
/// Longer lines are cut, in characters.
const MAX_LINE_CHARS: usize = 100;

const INTRODUCTION: &str =
    "I am Hardpan's offline assistant: there is no language model behind this answer, only a search.";
const KEY_HINT: &str = "For real answers, set a provider's key, such as ANTHROPIC_API_KEY or OPENAI_API_KEY; \
                   `hardpan providers` lists them.";

/// The answer to a greeting.
pub fn greeting() -> String {
    format!(
        "{INTRODUCTION} Ask where something is defined (\"where is RetryPolicy defined?\"), who uses it, what a file \
         contains, or for a map of this folder.\n\n{KEY_HINT}"
    )
}

/// Says who answers; below the first answer of a conversation.
pub fn signature() -> String {
    format!("{INTRODUCTION} {KEY_HINT}")
}

/// What stands above places where something was to be changed.
pub fn cannot_change() -> &'static str {
    "I cannot change anything; I can only show where to look."
}

/// The answer if nothing matched.
pub fn nothing_found(question: &Question, evidence: &Evidence) -> String {
    let near =
        evidence.nearest_names.as_ref().map(|names| format!(" Names like it: {names}.")).unwrap_or_default();
    format!("I found nothing about {} in this folder.{near}", quoted(&question.terms))
}

/// Where a name is defined, what it looks like, and who uses it.
pub fn definitions(found: &[Definition], read: &[SourceLine]) -> String {
    let Some(first) = found.first() else { return String::new() };
    let mut text = format!("{}: `{}`", first.place(), shorten(&first.what));
    let excerpt = excerpt(read, first);
    if !excerpt.is_empty() {
        text.push_str(&fenced(&excerpt));
    }
    if let Some(users) = &first.users {
        text.push_str(&format!("\n\nUsed in {users}."));
    }
    for other in found.iter().skip(1).take(MAX_PLACES - 1) {
        text.push_str(&format!("\n- {}: `{}`", other.place(), shorten(&other.what)));
    }
    text + &more(found.len(), MAX_PLACES, "definition")
}

/// Who uses a name: lines of code first, then in how many documents it stands.
pub fn users(name: &str, evidence: &Evidence) -> Option<String> {
    let is_definition = |line: &SourceLine| {
        let known =
            evidence.definitions.iter().any(|it| it.path == line.source && Some(it.line) == line.number);
        known
            || definition(&line.text)
                .is_some_and(|defined| name.ends_with(defined) && evidence.definitions.is_empty())
    };
    let mut code: Vec<&SourceLine> = evidence
        .lines
        .iter()
        .filter(|line| SourceKind::of(&line.source).is_code() && !is_definition(line))
        .collect();
    code.sort_by_key(|line| SourceKind::of(&line.source)); // stable: tests come after what they test
    let mut others: Vec<&str> = evidence
        .lines
        .iter()
        .filter(|line| !SourceKind::of(&line.source).is_code())
        .map(|line| line.source.as_str())
        .collect();
    others.dedup();
    let defined = evidence.definitions.first();
    let mut text = match defined {
        Some(definition) => format!("`{name}` is defined at {}.", definition.place()),
        None if code.is_empty() && others.is_empty() => return None,
        None => String::new(),
    };
    let add = |text: &mut String, line: &str| {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(line);
    };
    match code.len() {
        0 => add(&mut text, "No line of code uses it by name."),
        count => {
            let mut files: Vec<&str> = code.iter().map(|line| line.source.as_str()).collect();
            files.dedup();
            let head = format!("Used in {} of {}:\n", plural(count, "line"), plural(files.len(), "file"));
            add(&mut text, &head);
            code.iter().take(MAX_PLACES).for_each(|line| text.push_str(&place(line)));
            text.push_str(&more(count, MAX_PLACES, "line"));
        }
    }
    if !others.is_empty() {
        let named = others.iter().take(3).copied().collect::<Vec<_>>().join(", ");
        let more = if others.len() > 3 { ", …" } else { "" };
        add(&mut text, &format!("\nAlso named in {named}{more}."));
    }
    Some(text)
}

/// What a file contains: its definitions or, without any, how it begins.
pub fn contents(path: &str, evidence: &Evidence) -> Option<String> {
    let (outline, read) = (&evidence.outline, &evidence.read);
    // The first line of an outline names the file.
    let has_outline = outline.len() > 1 && !outline[1].starts_with('[');
    if !has_outline && read.is_empty() {
        return None;
    }
    let head: Vec<String> = read.iter().map(|line| line.text.clone()).collect();
    let head_lines = if has_outline { 3 } else { head.len() };
    let begin: Vec<String> =
        head.into_iter().take(head_lines).skip_while(|line| line.trim().is_empty()).collect();
    let mut text = if has_outline { outline[0].clone() } else { format!("{path} begins so:") };
    if !begin.iter().all(|line| line.trim().is_empty()) {
        text.push_str(&fenced(&begin));
    }
    if has_outline {
        text.push_str("\nIt defines, by line:");
        text.push_str(&fenced(&limited(&outline[1..])));
    }
    Some(text)
}

/// The folder as a whole.
pub fn map(evidence: &Evidence) -> Option<String> {
    let listed: Vec<String> = match evidence.outline.is_empty() {
        true => evidence.files.iter().map(|file| file.source.clone()).collect(),
        false => evidence.outline.clone(),
    };
    if listed.iter().all(|line| line == NO_OUTPUT) && evidence.has_called("symbols") {
        return Some("This folder has no files that could be listed.".to_owned());
    }
    (!listed.is_empty()).then(|| format!("What this folder holds:{}", fenced(&limited(&listed))))
}

/// The places that match the words of a question.
pub fn matches(question: &Question, found: &[SourceMatch], evidence: &Evidence) -> String {
    let mut text = format!("Places that match {}, the best first:", quoted(&question.terms));
    let known = evidence.definitions.iter().take(if found.is_empty() { MAX_PLACES } else { 3 });
    let mut shown: Vec<(String, usize)> = Vec::new();
    for definition in known {
        text.push_str(&format!("\n- {}: `{}`", definition.place(), shorten(&definition.what)));
        shown.push((definition.path.clone(), definition.line));
    }
    let mut left = MAX_PLACES.saturating_sub(shown.len());
    for source in found {
        let mut best: Vec<_> = source.hits.iter().collect();
        best.sort_by_key(|hit| std::cmp::Reverse(hit.score));
        let is_new = |line: &SourceLine| {
            !shown.iter().any(|(path, number)| *path == line.source && Some(*number) == line.number)
        };
        let lines: Vec<&SourceLine> =
            best.iter().map(|hit| &hit.line).filter(|line| is_new(line)).take(2).collect();
        if left == 0 {
            break;
        }
        if source.hits.is_empty() {
            text.push_str(&format!("\n- {}", source.source));
            left -= 1;
        }
        for line in lines.into_iter().take(left) {
            text.push_str(&place(line));
            left -= 1;
        }
    }
    text
}

/// The lines from the comment above a definition to its end, as far as they were read.
fn excerpt(read: &[SourceLine], definition: &Definition) -> Vec<String> {
    let Some(at) =
        read.iter().position(|line| line.source == definition.path && line.number == Some(definition.line))
    else {
        return Vec::new();
    };
    const COMMENTS: [&str; 8] = ["//", "#", "@", "*", "/*", "--", ";", "\"\"\""];
    let is_comment =
        |line: &&SourceLine| COMMENTS.iter().any(|start| line.text.trim_start().starts_with(start));
    let above = read[..at].iter().rev().take_while(is_comment).count();
    let indent = |text: &str| text.len() - text.trim_start().len();
    let own = indent(&read[at].text);
    let mut lines: Vec<String> = read[at - above..=at].iter().map(|line| line.text.clone()).collect();
    for line in read[at + 1..].iter().take(MAX_EXCERPT - 1) {
        let is_outside = !line.text.trim().is_empty() && indent(&line.text) <= own;
        let closes = line.text.trim_start().starts_with(['}', ')', ']']) || line.text.trim() == "end";
        if is_outside && !closes {
            break;
        }
        lines.push(line.text.clone());
        if is_outside {
            break;
        }
    }
    while lines.last().is_some_and(|line| line.trim().is_empty()) {
        lines.pop();
    }
    lines
}

fn fenced(lines: &[String]) -> String {
    // No line can close the fence.
    let lines: Vec<String> = lines.iter().map(|line| line.replace("```", "'''")).collect();
    format!("\n```\n{}\n```", lines.join("\n"))
}

fn limited(lines: &[String]) -> Vec<String> {
    let mut kept: Vec<String> = lines.iter().take(MAX_OUTLINE).cloned().collect();
    if lines.len() > MAX_OUTLINE {
        kept.push(format!("… and {} more", plural(lines.len() - MAX_OUTLINE, "line")));
    }
    kept
}

fn place(line: &SourceLine) -> String {
    match line.number {
        Some(number) => format!("\n- {}:{number}: `{}`", line.source, shorten(&line.text)),
        None => format!("\n- {}", line.source),
    }
}

fn more(count: usize, shown: usize, noun: &str) -> String {
    match count.saturating_sub(shown) {
        0 => String::new(),
        left => format!("\n- and {}", plural(left, &format!("more {noun}"))),
    }
}

fn plural(count: usize, noun: &str) -> String {
    let end = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{end}")
}

fn quoted(terms: &[SearchTerm]) -> String {
    // Parts of a name say nothing beside it.
    let said = terms.iter().filter(|term| term.weight > 1).take(4);
    said.map(|term| format!("`{}`", term.asked)).collect::<Vec<_>>().join(", ")
}

fn shorten(line: &str) -> String {
    let line = line.trim().replace('`', "'");
    match line.char_indices().nth(MAX_LINE_CHARS) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}
