//! Scratch.
#![allow(clippy::all)]
use std::time::Instant;
use hardpan_symbols::*;
fn walk(d: &std::path::Path, out: &mut Vec<std::path::PathBuf>) {
    let Ok(r) = std::fs::read_dir(d) else { return };
    let mut v: Vec<_> = r.flatten().map(|e| e.path()).collect(); v.sort();
    for p in v { if p.is_symlink() { continue } if p.is_dir() { walk(&p, out) } else { out.push(p) } }
}
fn main() {
    let a: Vec<String> = std::env::args().collect(); let lang = &a[1];
    let mut paths = vec![]; for d in &a[2..] { walk(d.as_ref(), &mut paths); }
    let langs = Languages::builtin(); let id = langs.named(lang).unwrap();
    let mut files: Vec<(String, Vec<u8>)> = vec![]; let mut bytes = 0;
    for p in paths { let s = p.to_string_lossy().into_owned(); if langs.detect(&s) == Some(id) { if let Ok(b) = std::fs::read(&p) { let s = s.replace("vendor", "x"); if bytes + b.len() < 6_000_000 && Outline::of(&s, &b).skipped.is_none() { bytes += b.len(); files.push((s, b)) } } } }
    let l = hardpan_grammars::language(if lang == "c-header" { "cpp" } else { lang }).unwrap();
    let (mut bp, mut bo) = (f64::MAX, f64::MAX);
    for _ in 0..3 {
        let t = Instant::now(); let mut p = tree_sitter::Parser::new(); p.set_language(&l).unwrap();
        for (_, b) in &files { std::hint::black_box(p.parse(b, None)); }
        bp = bp.min(t.elapsed().as_secs_f64());
        let t = Instant::now(); for (path, b) in &files { std::hint::black_box(Outline::of(path, b)); }
        bo = bo.min(t.elapsed().as_secs_f64());
    }
    println!("{lang}: {} files {} kB parse {:.0} ms outline {:.0} ms ratio {:.2}", files.len(), bytes / 1000, bp * 1e3, bo * 1e3, bo / bp);
}
