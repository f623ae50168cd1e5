//! Scratch.
#![allow(clippy::all)]
use std::time::Instant;
use hardpan_symbols::*;
fn walk(d: &std::path::Path, root: &str, out: &mut Vec<String>) {
    let Ok(r) = std::fs::read_dir(d) else { return };
    for p in r.flatten().map(|e| e.path()) { if p.is_symlink() { continue }
        if p.is_dir() { walk(&p, root, out) } else { let s = p.to_string_lossy(); out.push(s[root.len()+1..].to_string()) } }
}
fn rss() -> String { std::fs::read_to_string("/proc/self/status").unwrap().lines().filter(|l| l.starts_with("VmRSS") || l.starts_with("VmHWM")).map(|l| l.split_whitespace().nth(1).unwrap().to_string()).collect::<Vec<_>>().join("/") }
fn main() {
    let a: Vec<String> = std::env::args().collect(); let root = a[1].trim_end_matches('/').to_string();
    let limit: usize = a.get(2).and_then(|s| s.parse().ok()).unwrap_or(usize::MAX);
    let mut paths = vec![]; walk(root.as_ref(), &root, &mut paths); paths.sort();
    let langs = Languages::builtin();
    paths.retain(|p| langs.detect(p).is_some()); paths.truncate(limit);
    let read = |p: &str| std::fs::read(format!("{root}/{p}")).map_or(Source::Unreadable, Source::Content);
    let bytes: usize = paths.iter().map(|p| std::fs::metadata(format!("{root}/{p}")).map_or(0, |m| m.len() as usize)).sum();
    println!("{} files {} kB rss {}", paths.len(), bytes/1000, rss());
    let t = Instant::now(); let mut index = Index::default(); let mut last = Instant::now(); index.fill(&paths, read, |_| last = Instant::now());
    println!("fill {:?} of which relate {:?} rss {}", t.elapsed(), last.elapsed(), rss());
    let t = Instant::now(); let m = index.map(&MapRequest::default()); println!("map {:?} {} kB {} blocks", t.elapsed(), m.text().len()/1000, m.blocks.len());
    let count = |s: &str| s.len().div_ceil(4);
    for _ in 0..2 { let t = Instant::now(); let m = index.map(&MapRequest { budget: Some(Budget { tokens: 20000, count: &count }), ..Default::default() }); println!("budget map {:?} {} kB {} blocks {:?}", t.elapsed(), m.text().len()/1000, m.blocks.len(), m.left_out);
    let t = Instant::now(); let m2 = index.map(&MapRequest { memory: Some(&m.memory), ..Default::default() }); println!("memory map {:?} {}", t.elapsed(), m2.text() == m.text()); 
    if a.get(3).is_some() { println!("{}", m.text()); } }
    let t = Instant::now(); let r = index.ranks(&Focus { files: vec![paths[paths.len()/2].clone()], names: vec![] }); println!("ranks {:?} {}", t.elapsed(), r.len());
    let t = Instant::now(); let r = index.clusters(); println!("clusters {:?} {}", t.elapsed(), r.len());
    let mut worst = std::time::Duration::ZERO; let mut total = worst; let mut n = 0; let mut wp = String::new();
    for p in paths.iter().step_by(paths.len()/200+1) { let mut c = std::fs::read(format!("{root}/{p}")).unwrap(); if c.len() > 100_000 { continue } c.extend_from_slice(b"\n\nfn zzz_new_thing() { zzz_other() }\n"); let t = Instant::now(); index.update(p, &c); let e = t.elapsed(); total += e; n += 1; if e > worst { worst = e; wp = p.clone() } }
    println!("update mean {:?} worst {:?} {wp}", total / n, worst);
    let t = Instant::now(); index.update("brand/new/file.rs", b"fn f() {}"); println!("new file {:?}", t.elapsed());
    let t = Instant::now(); index.remove("brand/new/file.rs"); println!("removed {:?}", t.elapsed());
    let t = Instant::now(); let n: usize = paths.iter().map(|p| encode(&index.outline(p).unwrap()).len()).sum(); println!("encode {:?} {} kB", t.elapsed(), n/1000);
    println!("rss {}", rss());
}
