//! From a syntax tree to an [`Outline`]: the captures of the query are collected flat
//! ([`RawCaptures`]), then put together by their position.

mod assemble;
mod error_recovery;
mod words;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;

use tree_sitter::{Node, Parser, Tree};

use crate::capture::{Capture, ParamForm, SymbolKind};
use crate::language::{CompiledGrammar, Language};
use crate::outline::Outline;
use crate::query_matcher::MatchBuffers;

/// A range of the text, in bytes.
type Span = Range<usize>;

/// All captures of a file, not yet put together.
#[derive(Default)]
struct RawCaptures {
    /// Index of each definition by the start of its name: a name is defined once, however many
    /// patterns find it.
    names: BTreeMap<usize, usize>,
    definitions: Vec<RawDefinition>,
    params: Vec<Param>,
    /// Details from matches without a definition; they go to the innermost definition around them.
    unowned: Vec<(Capture, Span)>,
    calls: Vec<Span>,
    imports: BTreeMap<usize, RawImport>,
    tests: Vec<Span>,
    /// Comments and string literals, whose words are no references.
    texts: Vec<Span>,
}

/// One parameter, with the range of the parameter list it belongs to.
struct Param {
    list: (usize, usize),
    span: Span,
    form: ParamForm,
}

struct RawDefinition {
    kind: SymbolKind,
    /// The pattern that found it. If several do, the first in the query file decides the kind.
    pattern: usize,
    node: Span,
    name: Span,
    line: u32,
    params: Option<(usize, usize)>,
    returns: Option<Span>,
    parent: Option<Span>,
    /// By start position: each once, in order.
    bases: BTreeMap<usize, Span>,
    is_async: bool,
}

#[derive(Default)]
struct RawImport {
    path: Span,
    names: BTreeMap<usize, Span>,
    is_public: bool,
    is_submodule: bool,
}

thread_local! {
    /// Costly to create and cheap to reuse.
    static PARSER_AND_BUFFERS: RefCell<(Parser, MatchBuffers)> = RefCell::new((Parser::new(), MatchBuffers::default()));
}

/// Builds the outline of a text. It is empty if the grammar cannot be loaded or the parser gives
/// up.
pub(crate) fn outline(language: &Language, grammar: &CompiledGrammar, text: &str) -> Outline {
    PARSER_AND_BUFFERS.with_borrow_mut(|(parser, buffers)| {
        if parser.set_language(&grammar.grammar).is_err() {
            return Outline::default();
        }
        let Some(tree) = parser.parse(text, None) else { return Outline::default() };
        let mut captures = RawCaptures::default();
        collect_captures(grammar, &tree, text, buffers, &mut captures);
        for piece in error_recovery::reparse_errors(parser, &tree, text) {
            collect_captures(grammar, &piece, text, buffers, &mut captures);
        }
        let words = words::collect_words(language, text, &captures);
        assemble::assemble_outline(captures, words, text)
    })
}

fn collect_captures(
    grammar: &CompiledGrammar,
    tree: &Tree,
    text: &str,
    buffers: &mut MatchBuffers,
    collected: &mut RawCaptures,
) {
    grammar.matcher.for_each_match(tree, text, buffers, |(pattern, captures)| match captures {
        // By far the most frequent matches, handled first.
        [(Capture::Call, node)] => collected.calls.push(node.byte_range()),
        [(Capture::Text, node)] => collected.texts.push(node.byte_range()),
        _ => collected.add_match(captures, pattern),
    });
}

impl RawCaptures {
    /// Adds one match of the query.
    fn add_match(&mut self, captures: &[(Capture, Node<'_>)], pattern: usize) {
        let of =
            |wanted: Capture| captures.iter().find(|(capture, _)| *capture == wanted).map(|(_, node)| *node);
        // Ranges that no single node covers (`char *`, `a.b.c`) are captured by their ends.
        let whole = |wanted: Capture| {
            let mut ends =
                captures.iter().filter(|(capture, _)| *capture == wanted).map(|(_, node)| node.byte_range());
            let first = ends.next()?;
            Some(first.start..ends.next_back().map_or(first.end, |last| last.end))
        };
        if let Some(path) = whole(Capture::Import).or_else(|| whole(Capture::Submodule)) {
            let import = self.imports.entry(path.start).or_default();
            import.path = path;
            import.is_submodule |= of(Capture::Submodule).is_some();
            import.is_public |= of(Capture::ImportPublic).is_some();
            let names = captures.iter().filter(|(capture, _)| *capture == Capture::ImportName);
            import.names.extend(names.map(|(_, node)| (node.start_byte(), node.byte_range())));
        }
        if let Some(list) = of(Capture::Params) {
            let list = (list.start_byte(), list.end_byte());
            for (capture, node) in captures {
                if let Capture::Param(form) = *capture {
                    self.params.push(Param { list, span: node.byte_range(), form });
                }
            }
        }
        let definition = self.add_definition(captures, pattern);
        for (capture, node) in captures {
            let span = match capture {
                Capture::Returns => whole(Capture::Returns).unwrap_or_else(|| node.byte_range()),
                _ => node.byte_range(),
            };
            match (capture, definition.and_then(|at| self.definitions.get_mut(at))) {
                (Capture::Params, Some(owner)) => owner.params = Some((span.start, span.end)),
                (Capture::Returns | Capture::Async | Capture::Base | Capture::Parent, Some(owner)) => {
                    owner.add_detail(*capture, span);
                }
                (Capture::Returns | Capture::Async | Capture::Base, None) => {
                    self.unowned.push((*capture, span));
                }
                (Capture::Call, _) => self.calls.push(span),
                (Capture::Test, _) => self.tests.push(span),
                (Capture::Text, _) => self.texts.push(span),
                _ => {}
            }
        }
    }

    /// Adds the definition of a match, if it has one, and returns its index.
    fn add_definition(&mut self, captures: &[(Capture, Node<'_>)], pattern: usize) -> Option<usize> {
        let (kind, node) = captures.iter().find_map(|(capture, node)| match capture {
            Capture::Definition(kind) => Some((*kind, node)),
            _ => None,
        })?;
        let (_, name) = captures.iter().find(|(capture, _)| *capture == Capture::Name)?;
        let line = u32::try_from(name.start_position().row + 1).unwrap_or(u32::MAX);
        let at = *self.names.entry(name.start_byte()).or_insert(self.definitions.len());
        if at == self.definitions.len() {
            self.definitions.push(RawDefinition {
                kind,
                pattern,
                node: node.byte_range(),
                name: name.byte_range(),
                line,
                params: None,
                returns: None,
                parent: None,
                bases: BTreeMap::new(),
                is_async: false,
            });
        }
        let raw = &mut self.definitions[at];
        if pattern < raw.pattern {
            (raw.kind, raw.pattern, raw.node, raw.name) =
                (kind, pattern, node.byte_range(), name.byte_range());
        }
        Some(at)
    }
}

impl RawCaptures {
    /// Sorts the parameters and removes duplicates.
    fn sort_params(&mut self) {
        self.params.sort_by_key(|param| (param.list, param.span.start));
        self.params.dedup_by(|later, first| {
            let same = (later.list, later.span.start) == (first.list, first.span.start);
            if same {
                first.form = first.form.max(later.form);
            }
            same
        });
    }

    /// The parameters of a list.
    fn params(&self, list: (usize, usize)) -> impl Iterator<Item = &Param> {
        let start = self.params.partition_point(|param| param.list < list);
        self.params[start..].iter().take_while(move |param| param.list == list)
    }
}

impl RawDefinition {
    fn add_detail(&mut self, capture: Capture, span: Span) {
        match capture {
            Capture::Returns => self.returns = self.returns.take().or(Some(span)),
            Capture::Async => self.is_async = true,
            Capture::Base => drop(self.bases.insert(span.start, span)),
            Capture::Parent => self.parent = self.parent.take().or(Some(span)),
            _ => {}
        }
    }
}
