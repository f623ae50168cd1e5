//! Puts the gathered captures together: who is inside whom, whose parameter, whose call.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::{Gathered, RawDefinition, Span};
use crate::capture::{Kind, ParamForm};
use crate::outline::{Definition, Import, ImportForm, Outline, Reach, Waits};

/// Longer names are cut: nobody can use them, and a map of them is no map.
const NAME_LIMIT: usize = 80;
/// A parameter or base longer than this is a pattern or a type, and is cut.
const PARAM_LIMIT: usize = 40;
/// A return type longer than this is cut.
const RETURNS_LIMIT: usize = 60;

pub(super) fn assemble(mut gathered: Gathered, words: Vec<&str>, text: &str) -> Outline {
    let mut raws: Vec<RawDefinition> = std::mem::take(&mut gathered.definitions);
    gathered.sort_params();
    raws.sort_by_key(|raw| (raw.node.start, Reverse(raw.node.end), raw.name.start));
    let nesting = Nesting::of(&raws);
    for (capture, span) in std::mem::take(&mut gathered.loose) {
        if let Some(owner) = nesting.innermost(&raws, span.start) {
            raws[owner].take(capture, span);
        }
    }
    let mut definitions = definitions(&raws, &nesting, &gathered, text);
    calls(&mut definitions, &raws, &nesting, &gathered, &words, text);
    let definitions = join_scopes(definitions, &raws, text);
    let tests = &gathered.tests;
    let imports = gathered.imports.into_values().filter_map(|import| {
        if tests.iter().any(|test| test.contains(&import.path.start)) {
            return None;
        }
        let form = match (import.is_submodule, import.is_public) {
            (false, false) => ImportForm::Use,
            (false, true) => ImportForm::Public,
            (true, false) => ImportForm::Submodule,
            (true, true) => ImportForm::PublicSubmodule,
        };
        let path: Box<str> = tidy(unquoted(text.get(import.path)?), usize::MAX).into();
        let names =
            import.names.into_values().filter_map(|name| Some(tidy(text.get(name)?, NAME_LIMIT).into()));
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

/// Which definition's node encloses which: by place in the sorted list.
struct Nesting {
    enclosing: Vec<Option<usize>>,
}

impl Nesting {
    fn of(raws: &[RawDefinition]) -> Self {
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

    /// The innermost definition whose node holds that byte.
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

fn definitions(
    raws: &[RawDefinition],
    nesting: &Nesting,
    gathered: &Gathered,
    text: &str,
) -> Vec<Definition> {
    let mut definitions: Vec<Definition> = Vec::with_capacity(raws.len());
    for (at, raw) in raws.iter().enumerate() {
        let mut enclosing = nesting.enclosing[at];
        let holder = |at: Option<usize>, made: &[Definition]| at.map(|at| made[at].kind);
        // Instance variables that a constructor sets belong to the type.
        if raw.kind == Kind::Field && holder(enclosing, &definitions).is_some_and(Kind::is_callable) {
            enclosing = enclosing.and_then(|method| nesting.enclosing[method]);
        }
        let outer = enclosing.map(|at| &definitions[at]);
        let is_test = gathered.tests.iter().any(|test| test.contains(&raw.name.start));
        let reach = match outer {
            _ if is_test => Reach::Test,
            Some(outer) if outer.reach != Reach::Shared => outer.reach,
            Some(outer) if outer.kind.is_callable() || outer.kind == Kind::Property => Reach::Local,
            Some(outer) if outer.kind == Kind::Extension && !outer.bases.is_empty() => Reach::Implied,
            _ => Reach::Shared,
        };
        let kind = match raw.kind {
            Kind::Function if outer.is_some_and(|outer| outer.kind.has_members()) => Kind::Method,
            Kind::Constant | Kind::Variable if outer.is_some_and(|outer| outer.kind.has_members()) => {
                Kind::Field
            }
            kind => kind,
        };
        let name = text.get(raw.name.clone()).unwrap_or_default();
        definitions.push(Definition {
            kind,
            name: tidy(bare(unquoted(name)), NAME_LIMIT).into(),
            parent: enclosing.and_then(|at| u32::try_from(at).ok()),
            line: raw.line,
            signature: signature(kind, raw, gathered, text).into(),
            bases: raw
                .bases
                .values()
                .filter_map(|base| Some(tidy(text.get(base.clone())?, PARAM_LIMIT).into()))
                .collect(),
            waits: if raw.is_async { Waits::Async } else { Waits::No },
            reach,
            calls: Box::default(),
        });
    }
    definitions
}

/// `(a, b?)->T`, as far as the kind has it.
fn signature(kind: Kind, raw: &RawDefinition, gathered: &Gathered, text: &str) -> String {
    let mut signature = String::new();
    if let Some(list) = raw.params.filter(|_| kind != Kind::Property) {
        let params = gathered.params(list).map(|param| {
            let name = tidy(text.get(param.span.clone()).unwrap_or_default(), PARAM_LIMIT);
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
        signature.push_str(&tidy(returns, RETURNS_LIMIT));
    }
    signature
}

/// Gives every call to the function around it that other files can see.
fn calls(
    made: &mut [Definition],
    raws: &[RawDefinition],
    nesting: &Nesting,
    gathered: &Gathered,
    words: &[&str],
    text: &str,
) {
    let mut lists: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
    let mut spans: Vec<&Span> = gathered.calls.iter().collect();
    spans.sort_unstable_by_key(|span| span.start);
    for span in spans {
        let mut caller = nesting.innermost(raws, span.start);
        while let Some(at) = caller
            && (made[at].reach == Reach::Local
                || !(made[at].kind.is_callable() || made[at].kind == Kind::Property))
        {
            caller = nesting.enclosing[at];
        }
        let word = text.get(span.clone()).and_then(|name| words.binary_search(&name).ok());
        if let (Some(at), Some(word)) = (caller, word.and_then(|word| u32::try_from(word).ok())) {
            let list = lists.entry(at).or_default();
            if !list.contains(&word) && *words[word as usize] != *made[at].name {
                list.push(word);
            }
        }
    }
    for (at, list) in lists {
        made[at].calls = list.into();
    }
}

/// Moves what lies in a scope, or names its type itself, to that type, and leaves the scopes out.
///
/// Where this file does not define the type, the first scope of that name stands for it.
fn join_scopes(mut made: Vec<Definition>, raws: &[RawDefinition], text: &str) -> Vec<Definition> {
    let mut types: BTreeMap<Box<str>, usize> = BTreeMap::new();
    for (at, definition) in made.iter().enumerate() {
        let is_type = definition.kind.has_members() && definition.reach != Reach::Local;
        if is_type && !matches!(definition.kind, Kind::Extension | Kind::Field | Kind::Variant) {
            types.entry(definition.name.clone()).or_insert(at);
        }
    }
    // A parent without a type or scope of its own gets a scope, made up after the others.
    let mut moved: Vec<Option<usize>> = vec![None; made.len()];
    for at in 0..raws.len() {
        let home = match &raws[at].parent {
            Some(span) => tidy(text.get(span.clone()).unwrap_or_default(), NAME_LIMIT).into(),
            None if made[at].kind == Kind::Extension => made[at].name.clone(),
            None => continue,
        };
        let home = *types.entry(home).or_insert_with_key(|name| match made[at].kind {
            Kind::Extension => at,
            _ => {
                let (line, reach) = (made[at].line, made[at].reach);
                made.push(Definition {
                    kind: Kind::Extension,
                    name: name.clone(),
                    line,
                    reach,
                    ..Definition::nameless()
                });
                moved.push(None);
                made.len() - 1
            }
        });
        if raws[at].parent.is_some() {
            made[at].parent = u32::try_from(home).ok();
        } else if home != at {
            moved[at] = Some(home);
            let bases: Vec<_> = made[home].bases.iter().chain(&made[at].bases).cloned().collect();
            made[home].bases = bases.into();
        }
    }
    // A variable inside a function is nobody's business; what lies in it belongs to the function.
    for (at, definition) in made.iter().enumerate() {
        if definition.reach == Reach::Local && matches!(definition.kind, Kind::Variable | Kind::Constant) {
            moved[at] = definition.parent.map(|parent| parent as usize);
        }
    }
    // What is left out closes up the places of what follows it.
    let mut places: Vec<u32> = Vec::with_capacity(made.len());
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
    let kept = made.into_iter().zip(&moved).filter(|(_, gone)| gone.is_none());
    kept.map(|(definition, _)| Definition {
        parent: definition.parent.map(place),
        bases: unique(definition.bases),
        ..definition
    })
    .collect()
}

fn unique(bases: Box<[Box<str>]>) -> Box<[Box<str>]> {
    let mut kept: Vec<Box<str>> = Vec::with_capacity(bases.len());
    for base in bases {
        if !kept.contains(&base) {
            kept.push(base);
        }
    }
    kept.into()
}

impl Definition {
    fn nameless() -> Self {
        Definition {
            kind: Kind::Extension,
            name: Box::default(),
            parent: None,
            line: 1,
            signature: Box::default(),
            bases: Box::default(),
            waits: Waits::No,
            reach: Reach::Shared,
            calls: Box::default(),
        }
    }
}

/// Without the quotes around it.
fn unquoted(text: &str) -> &str {
    let inner = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
    ['"', '\'', '`'].into_iter().find_map(inner).unwrap_or(text)
}

/// A symbol or a key without its colon (`:name`, `name:`).
fn bare(name: &str) -> &str {
    let inner = name.strip_prefix(':').unwrap_or(name).trim_end();
    let inner = inner.strip_suffix(':').unwrap_or(inner);
    // `::`, and operators such as `:+:`, are names of their own.
    if inner.starts_with(|letter: char| letter.is_alphanumeric() || letter == '_') { inner } else { name }
}

/// One line: runs of white space become one blank, none inside brackets, no control characters, and at most `limit`
/// characters.
fn tidy(text: &str, limit: usize) -> String {
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
