//! Scratch.
#![allow(clippy::all)]
use std::time::Instant;
fn walk(d: &std::path::Path, ext: &str, out: &mut Vec<(String, Vec<u8>)>, limit: usize) {
    let Ok(r) = std::fs::read_dir(d) else { return };
    let mut es: Vec<_> = r.flatten().map(|e| e.path()).collect(); es.sort();
    for p in es { if out.len() >= limit { return }
        if p.is_dir() && !p.is_symlink() { walk(&p, ext, out, limit) } else if p.extension().is_some_and(|e| e == ext) { if let Ok(b) = std::fs::read(&p) { if b.len() < 1<<20 { out.push((p.to_string_lossy().into_owned(), b)) } } } }
}
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let mut files = vec![]; walk(a[1].as_ref(), &a[2], &mut files, a.get(3).and_then(|s| s.parse().ok()).unwrap_or(300));
    let l = hardpan_grammars::language(&a[4]).unwrap();
    let bytes: usize = files.iter().map(|f| f.1.len()).sum();
    for _ in 0..2 {
    let t = Instant::now(); let mut p = tree_sitter::Parser::new(); p.set_language(&l).unwrap();
    for (_, b) in &files { std::hint::black_box(p.parse(b, None)); }
    let parse = t.elapsed();
    let t = Instant::now(); let mut n = 0; let mut w = 0; let mut skipped = 0;
    for (path, b) in &files { let o = hardpan_symbols::Outline::of(path, b); n += o.definitions.len(); w += o.words.len(); skipped += o.skipped.is_some() as usize; }
    println!("{} files {} kB ({skipped} skipped) parse {:?} outline {:?} ratio {:.2} defs {n} words {w}", files.len(), bytes/1000, parse, t.elapsed(), t.elapsed().as_secs_f64()/parse.as_secs_f64());
    }
}
