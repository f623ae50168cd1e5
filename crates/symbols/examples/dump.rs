//! Prints what the index finds below some folders, one JSON object per file and line: for scripts
//! that compare it with other tools.
//!
//! `cargo run -p hardpan-symbols --example dump -- FOLDER…`

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use hardpan_symbols::{Languages, Outline, SkipReason};
use serde_json::json;

fn main() -> io::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    for folder in std::env::args_os().skip(1) {
        let mut files = Vec::new();
        collect(Path::new(&folder), &mut files)?;
        files.sort();
        for file in files {
            dump(&file, &mut out)?;
        }
    }
    out.flush()
}

/// Every file below a folder. Symbolic links are not followed.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            collect(&entry.path(), files)?;
        } else if kind.is_file() {
            files.push(entry.path());
        }
    }
    Ok(())
}

fn dump(file: &Path, out: &mut impl Write) -> io::Result<()> {
    // Only the name decides here: which folder somebody unpacked a tree into says nothing about it.
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let outline = Outline::parse(&name, &std::fs::read(file)?);
    let language =
        outline.language.and_then(|id| Languages::builtin().get(id)).map(|language| &language.name);
    if language.is_none() && outline.skipped.is_none() {
        return Ok(());
    }
    let symbols: Vec<_> = outline
        .definitions
        .iter()
        .map(|definition| {
            json!({
                "kind": definition.kind,
                "name": definition.name,
                "parent": outline.parent(definition).map(|parent| &parent.name),
                "line": definition.line,
                "reach": format!("{:?}", definition.visibility).to_lowercase(),
                "signature": definition.signature,
            })
        })
        .collect();
    let skipped = outline.skipped.map(SkipReason::as_str);
    let imports: Vec<_> = outline.imports.iter().map(|import| &import.path).collect();
    let line = json!({
        "path": file.to_string_lossy(),
        "language": language,
        "skipped": skipped,
        "symbols": symbols,
        "imports": imports,
    });
    writeln!(out, "{line}")
}
