//! [`Pattern`]: splits the text of a query into patterns, and finds the nodes each can start with.

use tree_sitter::Language;

/// One pattern of a query file.
#[derive(Debug)]
pub(super) struct Pattern<'q> {
    pub(super) text: &'q str,
}

/// Splits a query into its patterns.
pub(super) fn patterns(source: &str) -> Vec<Pattern<'_>> {
    elements(source).into_iter().map(|text| Pattern { text }).collect()
}

impl Pattern<'_> {
    /// Ids of the node kinds it can start with; `None` if it could start with any.
    pub(super) fn start_kinds(&self, grammar: &Language) -> Option<Vec<u16>> {
        let mut kinds = Vec::new();
        collect_start_kinds(self.text, grammar, &mut kinds)?;
        Some(kinds)
    }
}

fn collect_start_kinds(pattern: &str, grammar: &Language, kinds: &mut Vec<u16>) -> Option<()> {
    let body = &pattern[..body_end(pattern)];
    if body.starts_with('[') {
        // Sibling nodes as an alternative are not supported; no query needs them.
        return elements(inner_text(body)).into_iter().try_for_each(|one| match sibling_nodes(one).len() {
            0 | 1 => collect_start_kinds(one, grammar, kinds),
            _ => None,
        });
    }
    if let [first, ..] = sibling_nodes(pattern)[..] {
        // If the first node is optional, the pattern could start with another one.
        let may_be_absent = first[body_end(first)..].contains(['?', '*']);
        return if may_be_absent { None } else { collect_start_kinds(first, grammar, kinds) };
    }
    let name = node_name(inner_text(body));
    let kind = match name {
        "ERROR" => u16::MAX,
        _ => grammar.id_for_node_kind(name, true),
    };
    let is_one = body.starts_with('(') && kind != 0 && !grammar.node_kind_is_supertype(kind);
    kinds.push(is_one.then_some(kind)?);
    Some(())
}

/// The sibling nodes of a group; empty if the pattern is a node itself.
pub(super) fn sibling_nodes(pattern: &str) -> Vec<&str> {
    let inside = skip_blanks(inner_text(&pattern[..body_end(pattern)]));
    if !pattern.starts_with('(') || !inside.starts_with(['(', '[', '"']) {
        return Vec::new();
    }
    elements(inside).into_iter().filter(|element| !element.starts_with("(#") && *element != ".").collect()
}

/// The node kind that the inside of a node pattern begins with.
pub(super) fn node_name(inside: &str) -> &str {
    let inside = inside.trim_start();
    &inside[..inside.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(inside.len())]
}

/// The text between the brackets.
pub(super) fn inner_text(body: &str) -> &str {
    body.get(1..body.len().saturating_sub(1)).unwrap_or_default()
}

/// Splits a text into its elements (nodes, groups, dots), each with the captures and quantifiers
/// that follow it.
pub(super) fn elements(mut text: &str) -> Vec<&str> {
    let mut elements: Vec<&str> = Vec::new();
    text = skip_blanks(text);
    while !text.is_empty() {
        let mut end = body_end(text);
        loop {
            let rest = skip_blanks(&text[end..]);
            if !rest.starts_with(['@', '?', '*', '+']) {
                break;
            }
            end = text.len() - rest.len() + word_end(rest);
        }
        elements.push(&text[..end]);
        text = skip_blanks(&text[end..]);
    }
    elements
}

/// End of the node, group, string or word that the pattern begins with.
pub(super) fn body_end(pattern: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(letter) = pattern.as_bytes().get(at) {
        match letter {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth = depth.saturating_sub(1),
            b'"' => at += string_end(&pattern[at..]) - 1,
            b';' => at += pattern[at..].find('\n').unwrap_or(pattern.len() - at) - 1,
            _ if depth == 0 => return at + word_end(&pattern[at..]),
            _ => {}
        }
        at += 1;
        if depth == 0 {
            break;
        }
    }
    at.min(pattern.len())
}

fn word_end(text: &str) -> usize {
    let first = text.chars().next().map_or(0, char::len_utf8);
    let rest = &text[first..];
    first + rest.find(|c: char| c.is_whitespace() || "()[]\"@?*+;".contains(c)).unwrap_or(rest.len())
}

fn string_end(text: &str) -> usize {
    let mut escaped = false;
    for (at, letter) in text.bytes().enumerate().skip(1) {
        match letter {
            b'"' if !escaped => return at + 1,
            _ => escaped = letter == b'\\' && !escaped,
        }
    }
    text.len()
}

/// Skips blanks and comments in front.
fn skip_blanks(mut text: &str) -> &str {
    loop {
        text = text.trim_start();
        match text.strip_prefix(';') {
            Some(comment) => text = comment.split_once('\n').map_or("", |(_, rest)| rest),
            None => return text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_falls_into_patterns_and_those_into_nodes() {
        let query = "; one (\n[(a) (b)] @text ; two\n(c d: (_) @import) @x\n((e) @y (#eq? @y \"a)\\\"b\"))\n((f) . (g)* @a @b)+ \"h\"";
        let texts: Vec<&str> = patterns(query).iter().map(|pattern| pattern.text).collect();
        assert_eq!(
            texts,
            [
                "[(a) (b)] @text",
                "(c d: (_) @import) @x",
                "((e) @y (#eq? @y \"a)\\\"b\"))",
                "((f) . (g)* @a @b)+",
                "\"h\""
            ]
        );
        assert_eq!(sibling_nodes(texts[3]), ["(f)", "(g)* @a @b"]);
        assert!(sibling_nodes(texts[1]).is_empty());
    }

    #[test]
    fn a_pattern_begins_with_nodes_that_have_names() {
        let rust = hardpan_grammars::language("rust").unwrap();
        let names = |text: &str| {
            let kinds = Pattern { text }.start_kinds(&rust)?;
            Some(
                kinds
                    .into_iter()
                    .map(|kind| rust.node_kind_for_id(kind).unwrap_or("ERROR"))
                    .collect::<Vec<_>>(),
            )
        };
        assert_eq!(names("(mod_item !body) @a"), Some(vec!["mod_item"]));
        assert_eq!(
            names("(([(mod_item) (ERROR (block))]) (#eq? @a \"b\"))"),
            Some(vec!["mod_item", "ERROR"])
        );
        assert_eq!(names("((mod_item) . (block))"), Some(vec!["mod_item"]));
        for anywhere in
            ["(_ (block))", "\"fn\" @a", "((mod_item)? . (block))", "(_expression) @a", "(nothing)"]
        {
            assert_eq!(names(anywhere), None, "{anywhere}");
        }
    }
}
