//! Patterns as shapes: nodes or one of several, what they hold and what follows them, fields, captures, comparisons with
//! words. What is more than that (a regular expression, something optional) is left to tree-sitter.

use std::num::NonZeroU16;

use tree_sitter::{Language, Node};

use super::pattern::{Pattern, body_end, elements, inner, node_name, nodes};
use crate::capture::Capture;

/// A node of a tree, laid out in the order of the text.
#[derive(Debug)]
pub(super) struct Flat<'tree> {
    pub(super) node: Node<'tree>,
    pub(super) kind: u16,
    /// Its field in the node around it, where that was asked for.
    pub(super) field: Option<NonZeroU16>,
    /// The place of the node around it; its own for the outermost.
    pub(super) parent: u32,
    /// The place of what follows it and all that it holds.
    pub(super) next: u32,
}

/// A whole pattern.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Shape {
    first: Item,
    follow: Vec<Part>,
    checks: Vec<Check>,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Item {
    is: Is,
    captures: Vec<Capture>,
}

#[derive(Debug, PartialEq, Eq)]
enum Is {
    /// One of these.
    OneOf(Vec<Item>),
    /// A node of a kind that holds these in this order.
    Node { kind: Kind, without: Vec<NonZeroU16>, holds: Vec<Part> },
    /// No named node follows.
    End,
}

impl Default for Is {
    fn default() -> Self {
        Is::OneOf(Vec::new())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    One(u16),
    /// `(_)`
    Named,
    /// `_`
    Any,
}

#[derive(Debug, PartialEq, Eq)]
struct Part {
    item: Item,
    field: Option<NonZeroU16>,
    /// Whether no named node stands before it.
    is_next: bool,
    /// Whether it may be there any number of times.
    repeats: bool,
}

/// `(#any-of? @capture "word" …)`
#[derive(Debug, PartialEq, Eq)]
struct Check {
    capture: Capture,
    words: Vec<Box<str>>,
    /// Whether it is to be one of the words, or none.
    wanted: bool,
}

/// Reads a pattern.
struct Reading<'g> {
    grammar: &'g Language,
    /// The captures that only predicates know, by number.
    private: Vec<String>,
    checks: Vec<Check>,
}

impl Shape {
    /// A pattern as a shape; none where it is more than that, or not right.
    pub(super) fn of(pattern: &Pattern<'_>, grammar: &Language) -> Option<Self> {
        let mut reading = Reading { grammar, private: Vec::new(), checks: Vec::new() };
        let (first, follow) = if nodes(pattern.text).is_empty() {
            (reading.item(pattern.text)?, Vec::new())
        } else {
            let (body, signs) = pattern.text.split_at(body_end(pattern.text));
            let mut parts = reading.parts(inner(body))?;
            let first = (!parts.is_empty() && signs.trim().is_empty()).then(|| parts.remove(0))?;
            (first.is_plain().then_some(first.item)?, parts)
        };
        Some(Shape { first, follow, checks: reading.checks })
    }

    /// Tells of the kinds whose children's fields are asked for.
    pub(super) fn fields(&self, tell: &mut impl FnMut(u16)) {
        self.first.fields(tell);
        self.follow.iter().for_each(|part| part.item.fields(tell));
    }
}

impl Reading<'_> {
    fn item(&mut self, text: &str) -> Option<Item> {
        let (body, signs) = text.split_at(body_end(text));
        let captures = signs.split_whitespace().map(|sign| self.capture(sign)).collect::<Option<_>>()?;
        let one = |kind| Is::Node { kind, without: Vec::new(), holds: Vec::new() };
        let is = match body.as_bytes().first()? {
            b'[' => {
                let items = elements(inner(body)).into_iter().map(|one| self.item(one));
                Is::OneOf(items.collect::<Option<_>>()?)
            }
            b'(' if nodes(body).is_empty() => self.node(inner(body))?,
            b'"' => one(Kind::One(self.kind(word(body)?, false)?)),
            _ if body == "_" => one(Kind::Any),
            _ => return None,
        };
        Some(Item { is, captures })
    }

    fn node(&mut self, inside: &str) -> Option<Is> {
        let name = node_name(inside);
        let kind = match name {
            "_" => Kind::Named,
            "ERROR" => Kind::One(u16::MAX),
            _ => Kind::One(self.kind(name, true)?),
        };
        let (absent, present): (Vec<&str>, Vec<&str>) = elements(inside.trim_start().strip_prefix(name)?)
            .into_iter()
            .partition(|element| element.starts_with('!'));
        let without = absent.into_iter().map(|field| self.grammar.field_id_for_name(&field[1..]));
        Some(Is::Node { kind, without: without.collect::<Option<_>>()?, holds: self.listed(present)? })
    }

    fn parts(&mut self, text: &str) -> Option<Vec<Part>> {
        self.listed(elements(text))
    }

    fn listed(&mut self, elements: Vec<&str>) -> Option<Vec<Part>> {
        let mut parts: Vec<Part> = Vec::new();
        let (mut field, mut is_next) = (None, false);
        for element in elements {
            if element == "." {
                // After any node at all, nameless ones count as well: not done here.
                let after_any = parts.last().is_some_and(|part| part.item.is_any());
                is_next = (!after_any).then_some(true)?;
            } else if let Some(name) = element.strip_suffix(':') {
                field = Some(self.grammar.field_id_for_name(name)?);
            } else if element.starts_with("(#") {
                let check = self.check(inner(element))?;
                self.checks.push(check);
            } else {
                let (body, signs) = element.split_at(body_end(element));
                let signs = signs.trim_start();
                let repeats = signs.starts_with('*') && is_next;
                let element = if repeats { format!("{body}{}", &signs[1..]) } else { element.to_owned() };
                let item = self.item(&element)?;
                parts.push(Part {
                    item,
                    field: field.take(),
                    is_next: std::mem::take(&mut is_next),
                    repeats,
                });
            }
        }
        if is_next {
            let item = Item { is: Is::End, captures: Vec::new() };
            parts.push(Part { item, field: None, is_next: true, repeats: false });
        }
        Some(parts)
    }

    fn check(&mut self, inside: &str) -> Option<Check> {
        let mut elements = elements(inside.strip_prefix('#')?).into_iter();
        let (name, captures) = elements.next().and_then(|head| head.split_once('?'))?;
        // Two captures are compared with each other: not done here.
        let capture = self.capture(captures.trim()).filter(|_| captures.matches('@').count() == 1)?;
        let wanted = match name {
            "eq" | "any-of" => true,
            "not-eq" | "not-any-of" => false,
            _ => return None,
        };
        let words = elements.map(|text| word(text).map(Box::from)).collect::<Option<_>>()?;
        Some(Check { capture, words, wanted })
    }

    fn capture(&mut self, sign: &str) -> Option<Capture> {
        let name = sign.strip_prefix('@')?;
        if !name.starts_with('_') {
            return Capture::named(name);
        }
        let known = self.private.iter().position(|known| known == name);
        let at = known.unwrap_or_else(|| {
            self.private.push(name.to_owned());
            self.private.len() - 1
        });
        u8::try_from(at).ok().map(Capture::Private)
    }

    /// The number of a kind; none for a name that stands for several.
    fn kind(&self, name: &str, is_named: bool) -> Option<u16> {
        let kind = self.grammar.id_for_node_kind(name, is_named);
        (kind != 0 && !self.grammar.node_kind_is_supertype(kind)).then_some(kind)
    }
}

/// A text without its quotes; none where it has signs that stand for others.
fn word(quoted: &str) -> Option<&str> {
    quoted.strip_prefix('"')?.strip_suffix('"').filter(|word| !word.contains('\\'))
}

impl Part {
    fn is_plain(&self) -> bool {
        self.field.is_none() && !self.is_next && !self.repeats
    }
}

impl Item {
    fn is_any(&self) -> bool {
        match &self.is {
            Is::OneOf(items) => items.iter().any(Item::is_any),
            Is::Node { kind, .. } => *kind == Kind::Any,
            Is::End => false,
        }
    }

    fn fields(&self, tell: &mut impl FnMut(u16)) {
        match &self.is {
            Is::OneOf(items) => items.iter().for_each(|item| item.fields(tell)),
            Is::Node { kind, without, holds } => {
                if let Kind::One(kind) = kind
                    && (!without.is_empty() || holds.iter().any(|part| part.field.is_some()))
                {
                    tell(*kind);
                }
                holds.iter().for_each(|part| part.item.fields(tell));
            }
            Is::End => {}
        }
    }
}

type Seen<'tree> = Vec<(Capture, Node<'tree>)>;

/// The nodes of a tree and its text.
#[derive(Clone, Copy)]
pub(super) struct Laid<'a, 'tree> {
    pub(super) flat: &'a [Flat<'tree>],
    pub(super) source: &'a str,
}

impl<'tree> Laid<'_, 'tree> {
    /// Calls `found` with what a shape captures, once for every way in which it begins at a place.
    pub(super) fn each_match(
        self,
        shape: &Shape,
        at: usize,
        seen: &mut Seen<'tree>,
        found: &mut dyn FnMut(&Seen<'tree>),
    ) {
        let node = &self.flat[at];
        let end = self.flat[node.parent as usize].next as usize;
        self.each_item(&shape.first, at, seen, &mut |seen| {
            self.each_way(&shape.follow, node.next as usize, end, seen, &mut |seen| {
                if shape.checks.iter().all(|check| self.holds(check, seen)) {
                    found(seen);
                }
            });
        });
    }

    fn each_item(
        self,
        item: &Item,
        at: usize,
        seen: &mut Seen<'tree>,
        found: &mut dyn FnMut(&mut Seen<'tree>),
    ) {
        let node = &self.flat[at];
        let before = seen.len();
        seen.extend(item.captures.iter().map(|capture| (*capture, node.node)));
        match &item.is {
            Is::OneOf(items) => items.iter().for_each(|item| self.each_item(item, at, seen, found)),
            Is::Node { kind, without, holds } => {
                let fits = match kind {
                    Kind::One(kind) => node.kind == *kind,
                    Kind::Named => node.kind != u16::MAX && node.node.is_named(),
                    Kind::Any => node.kind != u16::MAX,
                };
                if fits && !without.iter().any(|field| self.has_field(at, *field)) {
                    self.each_way(holds, at + 1, node.next as usize, seen, found);
                }
            }
            Is::End => {}
        }
        seen.truncate(before);
    }

    /// Every way in which parts lie one after the other between two places.
    fn each_way(
        self,
        parts: &[Part],
        from: usize,
        end: usize,
        seen: &mut Seen<'tree>,
        found: &mut dyn FnMut(&mut Seen<'tree>),
    ) {
        let Some((part, rest)) = parts.split_first() else { return found(seen) };
        if part.item.is == Is::End {
            if !self.between(from, end).any(|at| self.flat[at].node.is_named()) {
                found(seen);
            }
            return;
        }
        if part.repeats {
            self.each_way(rest, from, end, seen, found);
        }
        let then = if part.repeats { parts } else { rest };
        for at in self.between(from, end) {
            let node = &self.flat[at];
            if part.field.is_none_or(|field| node.field == Some(field)) {
                self.each_item(&part.item, at, seen, &mut |seen| {
                    self.each_way(then, node.next as usize, end, seen, found);
                });
            }
            if part.is_next && node.node.is_named() {
                break;
            }
        }
    }

    /// The nodes beside each other between two places.
    fn between(self, from: usize, end: usize) -> impl Iterator<Item = usize> {
        let next = move |at: &usize| Some(self.flat[*at].next as usize).filter(|at| *at < end);
        std::iter::successors((from < end).then_some(from), next)
    }

    fn has_field(self, at: usize, field: NonZeroU16) -> bool {
        self.between(at + 1, self.flat[at].next as usize).any(|child| self.flat[child].field == Some(field))
    }

    fn holds(self, check: &Check, seen: &Seen<'tree>) -> bool {
        let mut captured = seen.iter().filter(|(capture, _)| *capture == check.capture);
        captured.all(|(_, node)| {
            let text = self.source.get(node.byte_range()).unwrap_or_default();
            check.words.iter().any(|word| **word == *text) == check.wanted
        })
    }
}
