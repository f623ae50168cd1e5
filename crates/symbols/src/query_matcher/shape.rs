//! [`Shape`]: a simple pattern that is matched without tree-sitter: nodes or alternatives, their
//! children and following siblings, fields, captures, comparisons with words. Anything more (a
//! regular expression, an optional node) is left to tree-sitter.

use std::num::NonZeroU16;

use tree_sitter::{Language, Node};

use super::query_pattern::{Pattern, body_end, elements, inner_text, node_name, sibling_nodes};
use crate::capture::Capture;

/// A node of a syntax tree in a flat list, in the order of the text.
#[derive(Debug)]
pub(super) struct FlatNode<'tree> {
    pub(super) node: Node<'tree>,
    pub(super) kind: u16,
    /// Its field in the parent, if some shape needs it.
    pub(super) field: Option<NonZeroU16>,
    /// Index of the parent; its own index for the root.
    pub(super) parent: u32,
    /// Index of the first node after it and all its descendants.
    pub(super) next: u32,
}

/// A whole pattern: its first node, the siblings after it, and predicates.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Shape {
    first: NodePattern,
    following: Vec<ChildPattern>,
    predicates: Vec<WordPredicate>,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct NodePattern {
    test: NodeTest,
    captures: Vec<Capture>,
}

#[derive(Debug, PartialEq, Eq)]
enum NodeTest {
    /// Any of these alternatives.
    OneOf(Vec<NodePattern>),
    /// A node of a kind with these children in this order.
    Node { kind: NodeKind, absent_fields: Vec<NonZeroU16>, children: Vec<ChildPattern> },
    /// No named node follows.
    End,
}

impl Default for NodeTest {
    fn default() -> Self {
        NodeTest::OneOf(Vec::new())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NodeKind {
    One(u16),
    /// `(_)`: any named node.
    Named,
    /// `_`: any node.
    Any,
}

#[derive(Debug, PartialEq, Eq)]
struct ChildPattern {
    pattern: NodePattern,
    field: Option<NonZeroU16>,
    /// Whether no named node may come before it.
    is_next: bool,
    /// Whether it may occur any number of times.
    repeats: bool,
}

/// A predicate such as `(#any-of? @capture "word" …)`.
#[derive(Debug, PartialEq, Eq)]
struct WordPredicate {
    capture: Capture,
    words: Vec<Box<str>>,
    /// Whether the text must be one of the words, or must not.
    must_match: bool,
}

/// Parses the text of a pattern.
struct ShapeParser<'g> {
    grammar: &'g Language,
    /// Names of the captures that only predicates use; their index is their number.
    private: Vec<String>,
    predicates: Vec<WordPredicate>,
}

impl Shape {
    /// Parses a pattern as a shape; `None` if it is more than that, or wrong.
    pub(super) fn parse(pattern: &Pattern<'_>, grammar: &Language) -> Option<Self> {
        let mut parser = ShapeParser { grammar, private: Vec::new(), predicates: Vec::new() };
        let (first, following) = if sibling_nodes(pattern.text).is_empty() {
            (parser.parse_node_pattern(pattern.text)?, Vec::new())
        } else {
            let (body, signs) = pattern.text.split_at(body_end(pattern.text));
            let mut parts = parser.parse_children(inner_text(body))?;
            let first = (!parts.is_empty() && signs.trim().is_empty()).then(|| parts.remove(0))?;
            (first.is_plain().then_some(first.pattern)?, parts)
        };
        Some(Shape { first, following, predicates: parser.predicates })
    }

    /// Calls `visit` with the node kinds whose children's fields are needed.
    pub(super) fn visit_kinds_with_fields(&self, visit: &mut impl FnMut(u16)) {
        self.first.visit_kinds_with_fields(visit);
        self.following.iter().for_each(|part| part.pattern.visit_kinds_with_fields(visit));
    }
}

impl ShapeParser<'_> {
    fn parse_node_pattern(&mut self, text: &str) -> Option<NodePattern> {
        let (body, signs) = text.split_at(body_end(text));
        let captures =
            signs.split_whitespace().map(|sign| self.parse_capture(sign)).collect::<Option<_>>()?;
        let one = |kind| NodeTest::Node { kind, absent_fields: Vec::new(), children: Vec::new() };
        let test = match body.as_bytes().first()? {
            b'[' => {
                let items = elements(inner_text(body)).into_iter().map(|one| self.parse_node_pattern(one));
                NodeTest::OneOf(items.collect::<Option<_>>()?)
            }
            b'(' if sibling_nodes(body).is_empty() => self.parse_node(inner_text(body))?,
            b'"' => one(NodeKind::One(self.node_kind_id(unquote_word(body)?, false)?)),
            _ if body == "_" => one(NodeKind::Any),
            _ => return None,
        };
        Some(NodePattern { test, captures })
    }

    fn parse_node(&mut self, inside: &str) -> Option<NodeTest> {
        let name = node_name(inside);
        let kind = match name {
            "_" => NodeKind::Named,
            "ERROR" => NodeKind::One(u16::MAX),
            _ => NodeKind::One(self.node_kind_id(name, true)?),
        };
        let (absent, present): (Vec<&str>, Vec<&str>) = elements(inside.trim_start().strip_prefix(name)?)
            .into_iter()
            .partition(|element| element.starts_with('!'));
        let absent_fields = absent.into_iter().map(|field| self.grammar.field_id_for_name(&field[1..]));
        Some(NodeTest::Node {
            kind,
            absent_fields: absent_fields.collect::<Option<_>>()?,
            children: self.parse_elements(present)?,
        })
    }

    fn parse_children(&mut self, text: &str) -> Option<Vec<ChildPattern>> {
        self.parse_elements(elements(text))
    }

    fn parse_elements(&mut self, elements: Vec<&str>) -> Option<Vec<ChildPattern>> {
        let mut parts: Vec<ChildPattern> = Vec::new();
        let (mut field, mut is_next) = (None, false);
        for element in elements {
            if element == "." {
                // After `_`, anonymous nodes count as well: not supported here.
                let after_any = parts.last().is_some_and(|part| part.pattern.is_any());
                is_next = (!after_any).then_some(true)?;
            } else if let Some(name) = element.strip_suffix(':') {
                field = Some(self.grammar.field_id_for_name(name)?);
            } else if element.starts_with("(#") {
                let predicate = self.parse_predicate(inner_text(element))?;
                self.predicates.push(predicate);
            } else {
                let (body, signs) = element.split_at(body_end(element));
                let signs = signs.trim_start();
                let repeats = signs.starts_with('*') && is_next;
                let element = if repeats { format!("{body}{}", &signs[1..]) } else { element.to_owned() };
                let pattern = self.parse_node_pattern(&element)?;
                parts.push(ChildPattern {
                    pattern,
                    field: field.take(),
                    is_next: std::mem::take(&mut is_next),
                    repeats,
                });
            }
        }
        if is_next {
            let pattern = NodePattern { test: NodeTest::End, captures: Vec::new() };
            parts.push(ChildPattern { pattern, field: None, is_next: true, repeats: false });
        }
        Some(parts)
    }

    fn parse_predicate(&mut self, inside: &str) -> Option<WordPredicate> {
        let mut elements = elements(inside.strip_prefix('#')?).into_iter();
        let (name, captures) = elements.next().and_then(|head| head.split_once('?'))?;
        // Comparing two captures with each other is not supported here.
        let capture = self.parse_capture(captures.trim()).filter(|_| captures.matches('@').count() == 1)?;
        let must_match = match name {
            "eq" | "any-of" => true,
            "not-eq" | "not-any-of" => false,
            _ => return None,
        };
        let words = elements.map(|text| unquote_word(text).map(Box::from)).collect::<Option<_>>()?;
        Some(WordPredicate { capture, words, must_match })
    }

    fn parse_capture(&mut self, sign: &str) -> Option<Capture> {
        let name = sign.strip_prefix('@')?;
        if !name.starts_with('_') {
            return Capture::from_name(name);
        }
        let known = self.private.iter().position(|known| known == name);
        let at = known.unwrap_or_else(|| {
            self.private.push(name.to_owned());
            self.private.len() - 1
        });
        u8::try_from(at).ok().map(Capture::Private)
    }

    /// Id of a node kind; `None` for a supertype, which stands for several.
    fn node_kind_id(&self, name: &str, is_named: bool) -> Option<u16> {
        let kind = self.grammar.id_for_node_kind(name, is_named);
        (kind != 0 && !self.grammar.node_kind_is_supertype(kind)).then_some(kind)
    }
}

/// A string without its quotes; `None` if it has escapes.
fn unquote_word(quoted: &str) -> Option<&str> {
    quoted.strip_prefix('"')?.strip_suffix('"').filter(|word| !word.contains('\\'))
}

impl ChildPattern {
    fn is_plain(&self) -> bool {
        self.field.is_none() && !self.is_next && !self.repeats
    }
}

impl NodePattern {
    fn is_any(&self) -> bool {
        match &self.test {
            NodeTest::OneOf(items) => items.iter().any(NodePattern::is_any),
            NodeTest::Node { kind, .. } => *kind == NodeKind::Any,
            NodeTest::End => false,
        }
    }

    fn visit_kinds_with_fields(&self, visit: &mut impl FnMut(u16)) {
        match &self.test {
            NodeTest::OneOf(items) => items.iter().for_each(|item| item.visit_kinds_with_fields(visit)),
            NodeTest::Node { kind, absent_fields, children } => {
                if let NodeKind::One(kind) = kind
                    && (!absent_fields.is_empty() || children.iter().any(|part| part.field.is_some()))
                {
                    visit(*kind);
                }
                children.iter().for_each(|part| part.pattern.visit_kinds_with_fields(visit));
            }
            NodeTest::End => {}
        }
    }
}

type Captures<'tree> = Vec<(Capture, Node<'tree>)>;

/// The nodes of a syntax tree and the text.
#[derive(Clone, Copy)]
pub(super) struct FlatTree<'a, 'tree> {
    pub(super) nodes: &'a [FlatNode<'tree>],
    pub(super) source: &'a str,
}

impl<'tree> FlatTree<'_, 'tree> {
    /// Calls `found` with the captures of a shape, once for every way in which it matches at a
    /// node.
    pub(super) fn for_each_match(
        self,
        shape: &Shape,
        at: usize,
        captures: &mut Captures<'tree>,
        found: &mut dyn FnMut(&Captures<'tree>),
    ) {
        let node = &self.nodes[at];
        let end = self.nodes[node.parent as usize].next as usize;
        self.match_node(&shape.first, at, captures, &mut |captures| {
            self.match_sequence(&shape.following, node.next as usize, end, captures, &mut |captures| {
                if shape.predicates.iter().all(|predicate| self.passes(predicate, captures)) {
                    found(captures);
                }
            });
        });
    }

    fn match_node(
        self,
        pattern: &NodePattern,
        at: usize,
        captures: &mut Captures<'tree>,
        found: &mut dyn FnMut(&mut Captures<'tree>),
    ) {
        let node = &self.nodes[at];
        let before = captures.len();
        captures.extend(pattern.captures.iter().map(|capture| (*capture, node.node)));
        match &pattern.test {
            NodeTest::OneOf(items) => {
                items.iter().for_each(|item| self.match_node(item, at, captures, found));
            }
            NodeTest::Node { kind, absent_fields, children } => {
                let fits = match kind {
                    NodeKind::One(kind) => node.kind == *kind,
                    NodeKind::Named => node.kind != u16::MAX && node.node.is_named(),
                    NodeKind::Any => node.kind != u16::MAX,
                };
                if fits && !absent_fields.iter().any(|field| self.has_field(at, *field)) {
                    self.match_sequence(children, at + 1, node.next as usize, captures, found);
                }
            }
            NodeTest::End => {}
        }
        captures.truncate(before);
    }

    /// Calls `found` for every way in which the parts match siblings between two positions, in
    /// order.
    fn match_sequence(
        self,
        parts: &[ChildPattern],
        from: usize,
        end: usize,
        captures: &mut Captures<'tree>,
        found: &mut dyn FnMut(&mut Captures<'tree>),
    ) {
        let Some((part, rest)) = parts.split_first() else { return found(captures) };
        if part.pattern.test == NodeTest::End {
            if !self.siblings_between(from, end).any(|at| self.nodes[at].node.is_named()) {
                found(captures);
            }
            return;
        }
        if part.repeats {
            self.match_sequence(rest, from, end, captures, found);
        }
        let then = if part.repeats { parts } else { rest };
        for at in self.siblings_between(from, end) {
            let node = &self.nodes[at];
            if part.field.is_none_or(|field| node.field == Some(field)) {
                self.match_node(&part.pattern, at, captures, &mut |captures| {
                    self.match_sequence(then, node.next as usize, end, captures, found);
                });
            }
            if part.is_next && node.node.is_named() {
                break;
            }
        }
    }

    /// Indices of the siblings between two positions.
    fn siblings_between(self, from: usize, end: usize) -> impl Iterator<Item = usize> {
        let next = move |at: &usize| Some(self.nodes[*at].next as usize).filter(|at| *at < end);
        std::iter::successors((from < end).then_some(from), next)
    }

    fn has_field(self, at: usize, field: NonZeroU16) -> bool {
        self.siblings_between(at + 1, self.nodes[at].next as usize)
            .any(|child| self.nodes[child].field == Some(field))
    }

    fn passes(self, predicate: &WordPredicate, captures: &Captures<'tree>) -> bool {
        let mut captured = captures.iter().filter(|(capture, _)| *capture == predicate.capture);
        captured.all(|(_, node)| {
            let text = self.source.get(node.byte_range()).unwrap_or_default();
            predicate.words.iter().any(|word| **word == *text) == predicate.must_match
        })
    }
}
