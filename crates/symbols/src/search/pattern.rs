//! Which nodes a pattern can begin with, read off its text.

use tree_sitter::Language;

/// One pattern of a query file.
#[derive(Debug)]
pub(super) struct Pattern<'q> {
    pub(super) text: &'q str,
}

/// The patterns of a query, in order.
pub(super) fn patterns(source: &str) -> Vec<Pattern<'_>> {
    elements(source).into_iter().map(|text| Pattern { text }).collect()
}

impl Pattern<'_> {
    /// The numbers of the kinds that it can begin with; none where that could be any.
    pub(super) fn begins(&self, grammar: &Language) -> Option<Vec<u16>> {
        let mut kinds = Vec::new();
        begins(self.text, grammar, &mut kinds)?;
        Some(kinds)
    }
}

fn begins(pattern: &str, grammar: &Language, kinds: &mut Vec<u16>) -> Option<()> {
    let body = &pattern[..body_end(pattern)];
    if body.starts_with('[') {
        // Neighbours as one of several are more than is asked for anywhere.
        return elements(inner(body)).into_iter().try_for_each(|one| match nodes(one).len() {
            0 | 1 => begins(one, grammar, kinds),
            _ => None,
        });
    }
    if let [first, ..] = nodes(pattern)[..] {
        // What may be left out leaves the beginning to what follows.
        let may_be_absent = first[body_end(first)..].contains(['?', '*']);
        return if may_be_absent { None } else { begins(first, grammar, kinds) };
    }
    let name = node_name(inner(body));
    let kind = match name {
        "ERROR" => u16::MAX,
        _ => grammar.id_for_node_kind(name, true),
    };
    let is_one = body.starts_with('(') && kind != 0 && !grammar.node_kind_is_supertype(kind);
    kinds.push(is_one.then_some(kind)?);
    Some(())
}

/// The nodes of a group that stand beside each other; empty where the pattern is a node itself.
pub(super) fn nodes(pattern: &str) -> Vec<&str> {
    let inside = blank(inner(&pattern[..body_end(pattern)]));
    if !pattern.starts_with('(') || !inside.starts_with(['(', '[', '"']) {
        return Vec::new();
    }
    elements(inside).into_iter().filter(|element| !element.starts_with("(#") && *element != ".").collect()
}

/// The name that the inside of a node begins with.
pub(super) fn node_name(inside: &str) -> &str {
    let inside = inside.trim_start();
    &inside[..inside.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(inside.len())]
}

/// What lies between the brackets.
pub(super) fn inner(body: &str) -> &str {
    body.get(1..body.len().saturating_sub(1)).unwrap_or_default()
}

/// Nodes, groups and dots beside each other, each with the captures and signs that follow it.
pub(super) fn elements(mut text: &str) -> Vec<&str> {
    let mut elements: Vec<&str> = Vec::new();
    text = blank(text);
    while !text.is_empty() {
        let mut end = body_end(text);
        loop {
            let rest = blank(&text[end..]);
            if !rest.starts_with(['@', '?', '*', '+']) {
                break;
            }
            end = text.len() - rest.len() + word_end(rest);
        }
        elements.push(&text[..end]);
        text = blank(&text[end..]);
    }
    elements
}

/// Where the node, group, text or word that the pattern begins with ends.
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

/// Without the blanks and comments in front.
fn blank(mut text: &str) -> &str {
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
        assert_eq!(nodes(texts[3]), ["(f)", "(g)* @a @b"]);
        assert!(nodes(texts[1]).is_empty());
    }

    #[test]
    fn a_pattern_begins_with_nodes_that_have_names() {
        let rust = hardpan_grammars::language("rust").unwrap();
        let names = |text: &str| {
            let kinds = Pattern { text }.begins(&rust)?;
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
