//! [`QueryMatcher`]: finds what a query matches, by looking only at nodes where one of its patterns
//! can start.
//!
//! Tree-sitter tries a query at every node, which costs two thirds of a parse. Here one plain walk,
//! at a third of that cost, lays out all nodes flat, and few of them start a pattern. Most patterns
//! are simple shapes that are compared with the flat nodes; for the others tree-sitter's own query
//! runs, but only on the nodes that can start them.

mod query_pattern;
mod shape;

use tree_sitter::{Language, Node, Query, QueryCursor, QueryError, StreamingIterator, Tree};

use crate::capture::Capture;
use query_pattern::{patterns, sibling_nodes};
use shape::{FlatNode, FlatTree, Shape};

/// Why a query cannot be compiled.
#[derive(Debug)]
pub(crate) enum QueryCompileError {
    /// Tree-sitter rejects it.
    Query(QueryError),
    /// It uses an unknown capture.
    Capture(String),
    /// A pattern may start at any node, or has several sibling nodes and is not a simple shape.
    Pattern(String),
}

/// A compiled query.
#[derive(Debug)]
pub(crate) struct QueryMatcher {
    /// Patterns that are shapes, with their positions in the query.
    shapes: Vec<(usize, Shape)>,
    /// All other patterns, for tree-sitter.
    fallback: FallbackQuery,
    /// By the id of a node kind; the last is for errors.
    kinds: Vec<KindPatterns>,
}

/// The patterns that can start at nodes of one kind.
#[derive(Clone, Debug, Default)]
struct KindPatterns {
    /// Indices of the shapes that can start here.
    shapes: Vec<usize>,
    runs_fallback: bool,
    /// Whether some shape needs the fields of its children.
    has_fields: bool,
}

/// The patterns that tree-sitter has to match.
#[derive(Debug)]
struct FallbackQuery {
    query: Query,
    /// Meaning of the query's captures, by index.
    captures: Vec<Option<Capture>>,
    /// Position of each pattern in the whole query.
    places: Vec<usize>,
}

/// Buffers that are costly to create and cheap to reuse.
#[derive(Default)]
pub(crate) struct MatchBuffers {
    queries: QueryCursor,
    flat: Vec<FlatNode<'static>>,
}

/// One match: the position of the pattern in the query, and its captures.
pub(crate) type QueryMatch<'a, 'tree> = (usize, &'a [(Capture, Node<'tree>)]);

impl QueryMatcher {
    pub(crate) fn new(grammar: &Language, source: &str) -> Result<Self, QueryCompileError> {
        let mut kinds = vec![KindPatterns::default(); grammar.node_kind_count() + 1];
        let last = grammar.node_kind_count();
        let mut shapes = Vec::new();
        let (mut fallback, mut places) = (String::new(), Vec::new());
        for (place, pattern) in patterns(source).into_iter().enumerate() {
            let unsupported = || QueryCompileError::Pattern(pattern.text.into());
            let begins = pattern.start_kinds(grammar).ok_or_else(unsupported)?;
            let begins = begins.into_iter().map(|kind| usize::from(kind).min(last));
            if let Some(shape) = Shape::parse(&pattern, grammar) {
                begins.for_each(|kind| kinds[kind].shapes.push(shapes.len()));
                shape.visit_kinds_with_fields(&mut |kind| {
                    kinds[usize::from(kind).min(last)].has_fields = true;
                });
                shapes.push((place, shape));
            } else if sibling_nodes(pattern.text).len() <= 1 {
                begins.for_each(|kind| kinds[kind].runs_fallback = true);
                fallback.push_str(pattern.text);
                fallback.push('\n');
                places.push(place);
            } else {
                return Err(unsupported());
            }
        }
        Ok(QueryMatcher { shapes, fallback: FallbackQuery::new(grammar, &fallback, places)?, kinds })
    }

    fn patterns_of(&self, kind: u16) -> &KindPatterns {
        &self.kinds[usize::from(kind).min(self.kinds.len() - 1)]
    }

    /// Calls `found` for every match.
    pub(crate) fn for_each_match<'tree>(
        &self,
        tree: &'tree Tree,
        source: &str,
        buffers: &mut MatchBuffers,
        mut found: impl FnMut(QueryMatch<'_, 'tree>),
    ) {
        let mut captures = Vec::new();
        let mut flat: Vec<FlatNode<'tree>> = std::mem::take(&mut buffers.flat);
        let mut cursor = tree.walk();
        // The ancestors of the cursor's node as indices, and whether their fields are needed.
        let mut ancestors: Vec<(u32, bool)> = Vec::new();
        'walk: loop {
            let node = cursor.node();
            let kind = node.kind_id();
            let begins = self.patterns_of(kind);
            let (parent, has_fields) = ancestors.last().copied().unwrap_or_default();
            let field = if has_fields { cursor.field_id() } else { None };
            if begins.runs_fallback {
                self.fallback.run(node, source, &mut buffers.queries, &mut captures, &mut found);
            }
            let at = flat.len() as u32;
            flat.push(FlatNode { node, kind, field, parent, next: at + 1 });
            if cursor.goto_first_child() {
                ancestors.push((at, begins.has_fields));
                continue;
            }
            while !cursor.goto_next_sibling() {
                let Some((parent, _)) = ancestors.pop() else { break 'walk };
                flat[parent as usize].next = flat.len() as u32;
                cursor.goto_parent();
            }
        }
        let flat_tree = FlatTree { nodes: &flat, source };
        for (at, node) in flat.iter().enumerate() {
            for (place, shape) in self.patterns_of(node.kind).shapes.iter().map(|shape| &self.shapes[*shape])
            {
                flat_tree.for_each_match(shape, at, &mut captures, &mut |captures| found((*place, captures)));
            }
        }
        // An empty vector fits any lifetime, so the memory can be kept; returning and requesting
        // this much at once makes the allocator clean up each time.
        flat.clear();
        buffers.flat = flat.into_iter().map(|_| unreachable!()).collect();
    }
}

impl FallbackQuery {
    fn new(grammar: &Language, source: &str, places: Vec<usize>) -> Result<Self, QueryCompileError> {
        let query = Query::new(grammar, source).map_err(QueryCompileError::Query)?;
        let meaning = |name: &&str| match Capture::from_name(name) {
            None if !name.starts_with('_') => Err(QueryCompileError::Capture((*name).into())),
            capture => Ok(capture),
        };
        let captures = query.capture_names().iter().map(meaning).collect::<Result<_, _>>()?;
        Ok(FallbackQuery { query, captures, places })
    }

    /// Runs the query on one node, for the patterns that start with it.
    fn run<'tree>(
        &self,
        node: Node<'tree>,
        source: &str,
        queries: &mut QueryCursor,
        captures: &mut Vec<(Capture, Node<'tree>)>,
        found: &mut impl FnMut(QueryMatch<'_, 'tree>),
    ) {
        queries.set_max_start_depth(Some(0));
        let mut matches = queries.matches(&self.query, node, source.as_bytes());
        while let Some(next) = matches.next() {
            captures.clear();
            for capture in next.captures() {
                let meaning = self.captures.get(capture.index as usize).copied().flatten();
                captures.extend(meaning.map(|meaning| (meaning, capture.node)));
            }
            if let Some(place) = self.places.get(next.pattern_index).filter(|_| !captures.is_empty()) {
                found((*place, captures));
            }
        }
        captures.clear();
    }
}

#[cfg(test)]
mod tests;
