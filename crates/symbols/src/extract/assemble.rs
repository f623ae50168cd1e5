//! Assembles an outline from the raw captures: nesting, parameters, calls, and members of types
//! that are defined elsewhere.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::{RawCaptures, RawDefinition, Span};
use crate::capture::{ParamForm, SymbolKind};
use crate::outline::{Asyncness, Definition, Import, ImportForm, Outline, Visibility};

/// Longest name in characters; longer ones are cut, as nobody can use them.
const NAME_LIMIT: usize = 80;
/// Longest parameter or base in characters; a longer one is a pattern or a type, and is cut.
const PARAM_LIMIT: usize = 40;
/// Longest return type in characters; longer ones are cut.
const RETURNS_LIMIT: usize = 60;

pub(super) fn assemble_outline(mut captures: RawCaptures, words: Vec<&str>, text: &str) -> Outline {
    let mut raws: Vec<RawDefinition> = std::mem::take(&mut captures.definitions);
    captures.sort_params();
    raws.sort_by_key(|raw| (raw.node.start, Reverse(raw.node.end), raw.name.start));
    let nesting = Nesting::new(&raws);
    for (capture, span) in std::mem::take(&mut captures.unowned) {
        if let Some(owner) = nesting.innermost(&raws, span.start) {
            raws[owner].add_detail(capture, span);
        }
    }
    let mut definitions = build_definitions(&raws, &nesting, &captures, text);
    attach_calls(&mut definitions, &raws, &nesting, &captures, &words, text);
    let definitions = join_scopes(definitions, &raws, text);
    let tests = &captures.tests;
    let imports = captures.imports.into_values().filter_map(|import| {
        if tests.iter().any(|test| test.contains(&import.path.start)) {
            return None;
        }
        let form = match (import.is_submodule, import.is_public) {
            (false, false) => ImportForm::Use,
            (false, true) => ImportForm::Public,
            (true, false) => ImportForm::Submodule,
            (true, true) => ImportForm::PublicSubmodule,
        };
        let path: Box<str> = to_single_line(strip_quotes(text.get(import.path)?), usize::MAX).into();
        let names = import
            .names
            .into_values()
            .filter_map(|name| Some(to_single_line(text.get(name)?, NAME_LIMIT).into()));
        (!path.is_empty()).then(|| Import { path, names: names.collect(), form })
    });
    Outline {
        language: None,
        skipped: None,
        definitions,
        imports: imports.collect(),
        words: words.into_iter().map(Box::from).collect(),
        manifest: None,
    }
}

/// The enclosing definition of each definition, as indices into the sorted list.
struct Nesting {
    enclosing: Vec<Option<usize>>,
}

impl Nesting {
    fn new(raws: &[RawDefinition]) -> Self {
        let mut enclosing = Vec::with_capacity(raws.len());
        let mut open: Vec<usize> = Vec::new();
        for (at, raw) in raws.iter().enumerate() {
            // Two names in one node (`A, B int`) are beside each other, not inside.
            while open
                .pop_if(|last| raws[*last].node.end <= raw.node.start || raws[*last].node == raw.node)
                .is_some()
            {}
            enclosing.push(open.last().copied());
            open.push(at);
        }
        Self { enclosing }
    }

    /// The innermost definition whose node contains the byte at this offset.
    fn innermost(&self, raws: &[RawDefinition], at: usize) -> Option<usize> {
        let mut found = raws.partition_point(|raw| raw.node.start <= at).checked_sub(1);
        while let Some(inner) = found
            && raws[inner].node.end <= at
        {
            found = self.enclosing[inner];
        }
        found
    }
}

fn build_definitions(
    raws: &[RawDefinition],
    nesting: &Nesting,
    captures: &RawCaptures,
    text: &str,
) -> Vec<Definition> {
    let mut definitions: Vec<Definition> = Vec::with_capacity(raws.len());
    for (at, raw) in raws.iter().enumerate() {
        let mut enclosing = nesting.enclosing[at];
        let holder = |at: Option<usize>, definitions: &[Definition]| at.map(|at| definitions[at].kind);
        // An instance variable that a constructor sets belongs to the type.
        if raw.kind == SymbolKind::Field
            && holder(enclosing, &definitions).is_some_and(SymbolKind::is_callable)
        {
            enclosing = enclosing.and_then(|method| nesting.enclosing[method]);
        }
        let outer = enclosing.map(|at| &definitions[at]);
        let is_test = captures.tests.iter().any(|test| test.contains(&raw.name.start));
        let visibility = match outer {
            _ if is_test => Visibility::Test,
            Some(outer) if outer.visibility != Visibility::Shared => outer.visibility,
            Some(outer) if outer.kind.is_callable() || outer.kind == SymbolKind::Property => {
                Visibility::Local
            }
            Some(outer) if outer.kind == SymbolKind::Extension && !outer.bases.is_empty() => {
                Visibility::Implied
            }
            _ => Visibility::Shared,
        };
        let kind = match raw.kind {
            SymbolKind::Function if outer.is_some_and(|outer| outer.kind.has_members()) => SymbolKind::Method,
            SymbolKind::Constant | SymbolKind::Variable
                if outer.is_some_and(|outer| outer.kind.has_members()) =>
            {
                SymbolKind::Field
            }
            kind => kind,
        };
        let name = text.get(raw.name.clone()).unwrap_or_default();
        definitions.push(Definition {
            kind,
            name: to_single_line(strip_colons(strip_quotes(name)), NAME_LIMIT).into(),
            parent: enclosing.and_then(|at| u32::try_from(at).ok()),
            line: raw.line,
            signature: signature(kind, raw, captures, text).into(),
            bases: raw
                .bases
                .values()
                .filter_map(|base| Some(to_single_line(text.get(base.clone())?, PARAM_LIMIT).into()))
                .collect(),
            asyncness: if raw.is_async { Asyncness::Async } else { Asyncness::Sync },
            visibility,
            calls: Box::default(),
        });
    }
    definitions
}

/// `(a, b?)->T`, as far as the kind has it.
fn signature(kind: SymbolKind, raw: &RawDefinition, captures: &RawCaptures, text: &str) -> String {
    let mut signature = String::new();
    if let Some(list) = raw.params.filter(|_| kind != SymbolKind::Property) {
        let params = captures.params(list).map(|param| {
            let name = to_single_line(text.get(param.span.clone()).unwrap_or_default(), PARAM_LIMIT);
            match param.form {
                ParamForm::Plain => name,
                ParamForm::Rest => format!("...{name}"),
                ParamForm::Optional => format!("{name}?"),
            }
        });
        signature = format!("({})", params.collect::<Vec<_>>().join(", "));
    }
    if let Some(returns) = raw.returns.clone().and_then(|span| text.get(span)) {
        signature.push_str("->");
        signature.push_str(&to_single_line(returns, RETURNS_LIMIT));
    }
    signature
}

/// Attributes every call to the enclosing function that other files can see.
fn attach_calls(
    definitions: &mut [Definition],
    raws: &[RawDefinition],
    nesting: &Nesting,
    captures: &RawCaptures,
    words: &[&str],
    text: &str,
) {
    let mut lists: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
    let mut spans: Vec<&Span> = captures.calls.iter().collect();
    spans.sort_unstable_by_key(|span| span.start);
    for span in spans {
        let mut caller = nesting.innermost(raws, span.start);
        while let Some(at) = caller
            && (definitions[at].visibility == Visibility::Local
                || !(definitions[at].kind.is_callable() || definitions[at].kind == SymbolKind::Property))
        {
            caller = nesting.enclosing[at];
        }
        let word = text.get(span.clone()).and_then(|name| words.binary_search(&name).ok());
        if let (Some(at), Some(word)) = (caller, word.and_then(|word| u32::try_from(word).ok())) {
            let list = lists.entry(at).or_default();
            if !list.contains(&word) && *words[word as usize] != *definitions[at].name {
                list.push(word);
            }
        }
    }
    for (at, list) in lists {
        definitions[at].calls = list.into();
    }
}

/// Moves the members of a scope (such as a Rust `impl`), and members that name their type, to that
/// type, and removes the scopes.
///
/// If this file does not define the type, the first scope of that name stands for it.
fn join_scopes(mut definitions: Vec<Definition>, raws: &[RawDefinition], text: &str) -> Vec<Definition> {
    let mut types: BTreeMap<Box<str>, usize> = BTreeMap::new();
    for (at, definition) in definitions.iter().enumerate() {
        let is_type = definition.kind.has_members() && definition.visibility != Visibility::Local;
        if is_type
            && !matches!(definition.kind, SymbolKind::Extension | SymbolKind::Field | SymbolKind::Variant)
        {
            types.entry(definition.name.clone()).or_insert(at);
        }
    }
    // A parent that is neither a type nor a scope here gets a new scope at the end.
    let mut moved: Vec<Option<usize>> = vec![None; definitions.len()];
    for at in 0..raws.len() {
        let home = match &raws[at].parent {
            Some(span) => to_single_line(text.get(span.clone()).unwrap_or_default(), NAME_LIMIT).into(),
            None if definitions[at].kind == SymbolKind::Extension => definitions[at].name.clone(),
            None => continue,
        };
        let home = *types.entry(home).or_insert_with_key(|name| match definitions[at].kind {
            SymbolKind::Extension => at,
            _ => {
                let (line, visibility) = (definitions[at].line, definitions[at].visibility);
                definitions.push(Definition {
                    kind: SymbolKind::Extension,
                    name: name.clone(),
                    line,
                    visibility,
                    ..Definition::empty()
                });
                moved.push(None);
                definitions.len() - 1
            }
        });
        if raws[at].parent.is_some() {
            definitions[at].parent = u32::try_from(home).ok();
        } else if home != at {
            moved[at] = Some(home);
            let bases: Vec<_> =
                definitions[home].bases.iter().chain(&definitions[at].bases).cloned().collect();
            definitions[home].bases = bases.into();
        }
    }
    // A local variable is not shown; what lies in it belongs to the function.
    for (at, definition) in definitions.iter().enumerate() {
        if definition.visibility == Visibility::Local
            && matches!(definition.kind, SymbolKind::Variable | SymbolKind::Constant)
        {
            moved[at] = definition.parent.map(|parent| parent as usize);
        }
    }
    // Removing definitions shifts the indices of those after them.
    let mut places: Vec<u32> = Vec::with_capacity(definitions.len());
    let mut next = 0;
    for gone in &moved {
        places.push(next);
        next += u32::from(gone.is_none());
    }
    let place = |at: u32| {
        let mut at = at as usize;
        while let Some(home) = moved[at] {
            at = home;
        }
        places[at]
    };
    let kept = definitions.into_iter().zip(&moved).filter(|(_, gone)| gone.is_none());
    kept.map(|(definition, _)| Definition {
        parent: definition.parent.map(place),
        bases: without_duplicates(definition.bases),
        ..definition
    })
    .collect()
}

fn without_duplicates(bases: Box<[Box<str>]>) -> Box<[Box<str>]> {
    let mut kept: Vec<Box<str>> = Vec::with_capacity(bases.len());
    for base in bases {
        if !kept.contains(&base) {
            kept.push(base);
        }
    }
    kept.into()
}

impl Definition {
    fn empty() -> Self {
        Definition {
            kind: SymbolKind::Extension,
            name: Box::default(),
            parent: None,
            line: 1,
            signature: Box::default(),
            bases: Box::default(),
            asyncness: Asyncness::Sync,
            visibility: Visibility::Shared,
            calls: Box::default(),
        }
    }
}

/// Removes the quotes around a text.
fn strip_quotes(text: &str) -> &str {
    let inner = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
    ['"', '\'', '`'].into_iter().find_map(inner).unwrap_or(text)
}

/// Removes the colon of a symbol or a key (`:name`, `name:`).
fn strip_colons(name: &str) -> &str {
    let inner = name.strip_prefix(':').unwrap_or(name).trim_end();
    let inner = inner.strip_suffix(':').unwrap_or(inner);
    // `::`, and operators such as `:+:`, are names of their own.
    if inner.starts_with(|letter: char| letter.is_alphanumeric() || letter == '_') { inner } else { name }
}

/// Makes a text one line: runs of white space become one blank, none inside brackets, no control
/// characters, and at most `limit` characters.
fn to_single_line(text: &str, limit: usize) -> String {
    let mut line = String::with_capacity(text.len().min(limit));
    let mut blank = false;
    let mut length = 0;
    for letter in text.chars() {
        if letter.is_whitespace() || letter.is_control() {
            blank = !line.is_empty() && !line.ends_with(['(', '[', '{', '<']);
            continue;
        }
        if length >= limit {
            line.push('…');
            break;
        }
        if std::mem::take(&mut blank) && !matches!(letter, ')' | ']' | '}' | '>' | ',') {
            line.push(' ');
            length += 1;
        }
        line.push(letter);
        length += 1;
    }
    line
}
