//! Finds what a query matches by looking only where one of its patterns can begin.
//!
//! Tree-sitter tries a query at every node, which costs two thirds of a parse. Here all nodes are laid out flat by one plain
//! walk, at a third of that, and few of them begin a pattern. Most patterns are shapes that are compared with the flat
//! nodes; for the others tree-sitter's query is run, on the node that begins them alone.

mod pattern;
mod shape;

use tree_sitter::{Language, Node, Query, QueryCursor, QueryError, StreamingIterator, Tree};

use crate::capture::Capture;
use pattern::{nodes, patterns};
use shape::{Flat, Laid, Shape};

/// Why a query cannot be searched for.
#[derive(Debug)]
pub(crate) enum Unfit {
    /// Tree-sitter refuses it.
    Query(QueryError),
    /// Nobody knows this capture.
    Capture(String),
    /// It may begin at any node, or is of several nodes beside each other and no shape.
    Pattern(String),
}

/// A query, made ready.
#[derive(Debug)]
pub(crate) struct Search {
    /// The patterns that are shapes, with their places in the query.
    shapes: Vec<(usize, Shape)>,
    /// The others.
    others: Others,
    /// By the number of a kind; errors are the last.
    kinds: Vec<Begins>,
}

/// What concerns nodes of a kind.
#[derive(Clone, Debug, Default)]
struct Begins {
    /// The shapes that begin here.
    shapes: Vec<usize>,
    others: bool,
    /// Whether some shape asks for the fields of its children.
    has_fields: bool,
}

/// Patterns for tree-sitter.
#[derive(Debug)]
struct Others {
    query: Query,
    /// What each of the query's captures means, by its index.
    captures: Vec<Option<Capture>>,
    /// The place of each pattern in the whole query.
    places: Vec<usize>,
}

/// What is costly to make and cheap to use again.
#[derive(Default)]
pub(crate) struct Scratch {
    queries: QueryCursor,
    flat: Vec<Flat<'static>>,
}

/// One match: the pattern's place, and what it captured.
pub(crate) type Match<'a, 'tree> = (usize, &'a [(Capture, Node<'tree>)]);

impl Search {
    pub(crate) fn new(grammar: &Language, source: &str) -> Result<Self, Unfit> {
        let mut kinds = vec![Begins::default(); grammar.node_kind_count() + 1];
        let last = grammar.node_kind_count();
        let mut shapes = Vec::new();
        let (mut others, mut places) = (String::new(), Vec::new());
        for (place, pattern) in patterns(source).into_iter().enumerate() {
            let unfit = || Unfit::Pattern(pattern.text.into());
            let begins = pattern.begins(grammar).ok_or_else(unfit)?;
            let begins = begins.into_iter().map(|kind| usize::from(kind).min(last));
            if let Some(shape) = Shape::of(&pattern, grammar) {
                begins.for_each(|kind| kinds[kind].shapes.push(shapes.len()));
                shape.fields(&mut |kind| kinds[usize::from(kind).min(last)].has_fields = true);
                shapes.push((place, shape));
            } else if nodes(pattern.text).len() <= 1 {
                begins.for_each(|kind| kinds[kind].others = true);
                others.push_str(pattern.text);
                others.push('\n');
                places.push(place);
            } else {
                return Err(unfit());
            }
        }
        Ok(Search { shapes, others: Others::new(grammar, &others, places)?, kinds })
    }

    fn begins(&self, kind: u16) -> &Begins {
        &self.kinds[usize::from(kind).min(self.kinds.len() - 1)]
    }

    /// Tells `found` of every match.
    pub(crate) fn each<'tree>(
        &self,
        tree: &'tree Tree,
        source: &str,
        scratch: &mut Scratch,
        mut found: impl FnMut(Match<'_, 'tree>),
    ) {
        let mut seen = Vec::new();
        let mut flat: Vec<Flat<'tree>> = std::mem::take(&mut scratch.flat);
        let mut cursor = tree.walk();
        // The places of the nodes around the cursor, and whether fields matter in them.
        let mut around: Vec<(u32, bool)> = Vec::new();
        'walk: loop {
            let node = cursor.node();
            let kind = node.kind_id();
            let begins = self.begins(kind);
            let (parent, has_fields) = around.last().copied().unwrap_or_default();
            let field = if has_fields { cursor.field_id() } else { None };
            if begins.others {
                self.others.run(node, source, &mut scratch.queries, &mut seen, &mut found);
            }
            let at = flat.len() as u32;
            flat.push(Flat { node, kind, field, parent, next: at + 1 });
            if cursor.goto_first_child() {
                around.push((at, begins.has_fields));
                continue;
            }
            while !cursor.goto_next_sibling() {
                let Some((parent, _)) = around.pop() else { break 'walk };
                flat[parent as usize].next = flat.len() as u32;
                cursor.goto_parent();
            }
        }
        let laid = Laid { flat: &flat, source };
        for (at, node) in flat.iter().enumerate() {
            for (place, shape) in self.begins(node.kind).shapes.iter().map(|shape| &self.shapes[*shape]) {
                laid.each_match(shape, at, &mut seen, &mut |seen| found((*place, seen)));
            }
        }
        // Empty, it is of any lifetime: the memory stays, since giving back and asking for so much at once makes the allocator
        // clean up each time.
        flat.clear();
        scratch.flat = flat.into_iter().map(|_| unreachable!()).collect();
    }
}

impl Others {
    fn new(grammar: &Language, source: &str, places: Vec<usize>) -> Result<Self, Unfit> {
        let query = Query::new(grammar, source).map_err(Unfit::Query)?;
        let meaning = |name: &&str| match Capture::named(name) {
            None if !name.starts_with('_') => Err(Unfit::Capture((*name).into())),
            capture => Ok(capture),
        };
        let captures = query.capture_names().iter().map(meaning).collect::<Result<_, _>>()?;
        Ok(Others { query, captures, places })
    }

    /// Runs the query on a node, for the patterns that begin with it.
    fn run<'tree>(
        &self,
        node: Node<'tree>,
        source: &str,
        queries: &mut QueryCursor,
        seen: &mut Vec<(Capture, Node<'tree>)>,
        found: &mut impl FnMut(Match<'_, 'tree>),
    ) {
        queries.set_max_start_depth(Some(0));
        let mut matches = queries.matches(&self.query, node, source.as_bytes());
        while let Some(next) = matches.next() {
            seen.clear();
            for capture in next.captures() {
                let meaning = self.captures.get(capture.index as usize).copied().flatten();
                seen.extend(meaning.map(|meaning| (meaning, capture.node)));
            }
            if let Some(place) = self.places.get(next.pattern_index).filter(|_| !seen.is_empty()) {
                found((*place, seen));
            }
        }
        seen.clear();
    }
}

#[cfg(test)]
mod tests;
