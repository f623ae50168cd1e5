//! Parses files with tree-sitter and does nothing else: what an index is compared with.
//!
//! Names come on standard input, one per line; seconds and bytes go to standard output. The files
//! are read before the clock starts. `git ls-files | cargo run --release -p hardpan-symbols
//! --example parse`

use std::io::BufRead;
use std::time::Instant;

use hardpan_symbols::{Languages, SIZE_LIMIT};
use rayon::prelude::*;
use tree_sitter::Parser;

#[allow(clippy::disallowed_methods, reason = "a benchmark looks at the clock")]
fn main() {
    let languages = Languages::builtin();
    let names: Vec<String> = std::io::stdin().lock().lines().map_while(Result::ok).collect();
    let read = |name: &String| {
        let language = languages.get(languages.detect(name)?)?;
        let grammar = hardpan_grammars::language(language.grammar())?;
        let text = std::fs::read(name).ok().filter(|text| text.len() <= SIZE_LIMIT)?;
        Some((grammar, text))
    };
    let files: Vec<_> = names.iter().filter_map(read).collect();
    let bytes: usize = files.iter().map(|(_, text)| text.len()).sum();
    let start = Instant::now();
    files.par_iter().for_each_init(Parser::new, |parser, (grammar, text)| {
        if parser.set_language(grammar).is_ok() {
            std::hint::black_box(parser.parse(text, None));
        }
    });
    println!("{:.3} {bytes} {}", start.elapsed().as_secs_f64(), files.len());
}
