//! From a syntax tree to an outline: the query's captures are gathered flat, then put together by where they stand.

mod assemble;
mod mend;
mod words;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;

use tree_sitter::{Node, Parser, Tree};

use crate::capture::{Capture, Kind, ParamForm};
use crate::language::{Language, Reader};
use crate::outline::Outline;
use crate::search::Scratch;

/// A piece of the text, in bytes.
type Span = Range<usize>;

/// Everything that the captures say, not yet put together.
#[derive(Default)]
struct Gathered {
    /// Definitions by where the name begins: a name is defined once, whatever number of patterns find it.
    names: BTreeMap<usize, usize>,
    definitions: Vec<RawDefinition>,
    params: Vec<Param>,
    /// Details whose match held no definition.
    loose: Vec<(Capture, Span)>,
    calls: Vec<Span>,
    imports: BTreeMap<usize, RawImport>,
    tests: Vec<Span>,
    /// Comments and strings.
    texts: Vec<Span>,
}

/// A parameter of the list that begins and ends there.
struct Param {
    list: (usize, usize),
    span: Span,
    form: ParamForm,
}

struct RawDefinition {
    kind: Kind,
    /// The pattern that found it; the first in the file decides what it is.
    pattern: usize,
    node: Span,
    name: Span,
    line: u32,
    params: Option<(usize, usize)>,
    returns: Option<Span>,
    parent: Option<Span>,
    /// By where they begin: each once, in order.
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
    /// Costly to make and cheap to use again.
    static TOOLS: RefCell<(Parser, Scratch)> = RefCell::new((Parser::new(), Scratch::default()));
}

/// The outline of a text. Empty where the grammar cannot be loaded or gives up.
pub(crate) fn outline(language: &Language, reader: &Reader, text: &str) -> Outline {
    TOOLS.with_borrow_mut(|(parser, scratch)| {
        if parser.set_language(&reader.grammar).is_err() {
            return Outline::default();
        }
        let Some(tree) = parser.parse(text, None) else { return Outline::default() };
        let mut gathered = Gathered::default();
        gather(reader, &tree, text, scratch, &mut gathered);
        for piece in mend::mend(parser, &tree, text) {
            gather(reader, &piece, text, scratch, &mut gathered);
        }
        let words = words::words(language, text, &gathered);
        assemble::assemble(gathered, words, text)
    })
}

fn gather(reader: &Reader, tree: &Tree, text: &str, scratch: &mut Scratch, gathered: &mut Gathered) {
    reader.search.each(tree, text, scratch, |(pattern, seen)| match seen {
        // By far the most frequent matches, so they take no detour.
        [(Capture::Call, node)] => gathered.calls.push(node.byte_range()),
        [(Capture::Text, node)] => gathered.texts.push(node.byte_range()),
        _ => gathered.add(seen, pattern),
    });
}

impl Gathered {
    /// One match of the query.
    fn add(&mut self, seen: &[(Capture, Node<'_>)], pattern: usize) {
        let of = |wanted: Capture| seen.iter().find(|(capture, _)| *capture == wanted).map(|(_, node)| *node);
        // What no single node covers (`char *`, `a.b.c`) is captured by its ends.
        let whole = |wanted: Capture| {
            let mut ends =
                seen.iter().filter(|(capture, _)| *capture == wanted).map(|(_, node)| node.byte_range());
            let first = ends.next()?;
            Some(first.start..ends.next_back().map_or(first.end, |last| last.end))
        };
        if let Some(path) = whole(Capture::Import).or_else(|| whole(Capture::Submodule)) {
            let import = self.imports.entry(path.start).or_default();
            import.path = path;
            import.is_submodule |= of(Capture::Submodule).is_some();
            import.is_public |= of(Capture::ImportPublic).is_some();
            let names = seen.iter().filter(|(capture, _)| *capture == Capture::ImportName);
            import.names.extend(names.map(|(_, node)| (node.start_byte(), node.byte_range())));
        }
        if let Some(list) = of(Capture::Params) {
            let list = (list.start_byte(), list.end_byte());
            for (capture, node) in seen {
                if let Capture::Param(form) = *capture {
                    self.params.push(Param { list, span: node.byte_range(), form });
                }
            }
        }
        let definition = self.define(seen, pattern);
        for (capture, node) in seen {
            let span = match capture {
                Capture::Returns => whole(Capture::Returns).unwrap_or_else(|| node.byte_range()),
                _ => node.byte_range(),
            };
            match (capture, definition.and_then(|at| self.definitions.get_mut(at))) {
                (Capture::Params, Some(owner)) => owner.params = Some((span.start, span.end)),
                (Capture::Returns | Capture::Async | Capture::Base | Capture::Parent, Some(owner)) => {
                    owner.take(*capture, span);
                }
                (Capture::Returns | Capture::Async | Capture::Base, None) => {
                    self.loose.push((*capture, span));
                }
                (Capture::Call, _) => self.calls.push(span),
                (Capture::Test, _) => self.tests.push(span),
                (Capture::Text, _) => self.texts.push(span),
                _ => {}
            }
        }
    }

    /// Notes the definition of a match, and tells its place.
    fn define(&mut self, seen: &[(Capture, Node<'_>)], pattern: usize) -> Option<usize> {
        let (kind, node) = seen.iter().find_map(|(capture, node)| match capture {
            Capture::Definition(kind) => Some((*kind, node)),
            _ => None,
        })?;
        let (_, name) = seen.iter().find(|(capture, _)| *capture == Capture::Name)?;
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

impl Gathered {
    /// Puts the parameters in order, each once.
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
    fn take(&mut self, capture: Capture, span: Span) {
        match capture {
            Capture::Returns => self.returns = self.returns.take().or(Some(span)),
            Capture::Async => self.is_async = true,
            Capture::Base => drop(self.bases.insert(span.start, span)),
            Capture::Parent => self.parent = self.parent.take().or(Some(span)),
            _ => {}
        }
    }
}
