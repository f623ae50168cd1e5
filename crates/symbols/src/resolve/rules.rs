//! The rules themselves.

use super::{FileId, Meaning, Paths, join, split};
use crate::language::Language;
use crate::manifest::Manifest;
use crate::outline::Import;

/// What an import of JavaScript or TypeScript may leave out, in the order in which it is tried.
const SCRIPT_ENDINGS: [&str; 19] = [
    "",
    ".ts",
    ".tsx",
    ".d.ts",
    ".mts",
    ".cts",
    ".js",
    ".jsx",
    ".mjs",
    ".cjs",
    "/index.ts",
    "/index.tsx",
    "/index.d.ts",
    "/index.js",
    "/index.jsx",
    "/index.mjs",
    "/src/index.ts",
    "/src/index.tsx",
    "/src/index.js",
];

impl Paths {
    /// `mod name;`
    pub(super) fn rust_submodule(&self, from: &str, name: &str) -> Meaning {
        let name = name.trim_start_matches("r#");
        let stem = join(&rust_module(from), name);
        let file = self.with_ending(&stem, &[".rs", "/mod.rs"]);
        // In a file that is a root of its own (tests, examples), modules lie beside it.
        let beside = || self.with_ending(&join(split(from).0, name), &[".rs", "/mod.rs"]);
        file.or_else(beside).map_or(Meaning::Nothing, |file| Meaning::Files(vec![file]))
    }

    /// `use` of one path: `crate::a::B`.
    pub(super) fn rust(&self, from: &str, path: &str) -> Meaning {
        let path = path.trim_start_matches("::");
        let plain = |part| str::trim(part).trim_start_matches("r#");
        let mut parts: Vec<&str> = path.split("::").map(plain).collect();
        let module = rust_module(from);
        let base = match parts.first().copied().unwrap_or_default() {
            "crate" => self.rust_root(from),
            "self" => module,
            "super" => {
                let up = parts.iter().take_while(|part| **part == "super").count();
                parts.drain(..up - 1);
                join(&module, &"../".repeat(up))
            }
            "std" | "core" | "alloc" | "" => return Meaning::Nothing,
            name => {
                if let Some(folder) =
                    self.named(|manifest| matches!(manifest, Manifest::Crate(known) if known == name))
                {
                    join(folder, "src")
                } else if self.with_ending(&join(&module, name), &[".rs", "/mod.rs"]).is_some() {
                    join(&module, name)
                } else {
                    return Meaning::External(name.to_string());
                }
            }
        };
        // The longest path that is a file; what follows is inside it.
        let rest = &parts[1..];
        for length in (0..=rest.len()).rev() {
            let stem = join(&base, &rest[..length].join("/"));
            let endings = ["/mod.rs", "/lib.rs", "/main.rs"];
            let file = (!stem.is_empty()).then(|| self.with_ending(&stem, &[".rs"])).flatten();
            if let Some(file) =
                file.or_else(|| endings.iter().find_map(|end| self.file(&join(&stem, &end[1..]))))
            {
                return Meaning::Files(vec![file]);
            }
        }
        Meaning::Nothing
    }

    /// The folder of the crate's root module: the nearest one above that holds it.
    fn rust_root(&self, from: &str) -> String {
        let holds =
            |folder: &&str| ["lib.rs", "main.rs"].iter().any(|name| self.file(&join(folder, name)).is_some());
        ancestors(split(from).0).find(holds).unwrap_or_default().to_string()
    }

    /// The folder of the deepest package file that fits.
    fn named(&self, fits: impl Fn(&Manifest) -> bool) -> Option<&str> {
        self.manifests.iter().find(|(_, manifest)| fits(manifest)).map(|(folder, _)| &**folder)
    }

    pub(super) fn python(&self, from: &str, import: &Import) -> Vec<Meaning> {
        let dots = import.path.bytes().take_while(|byte| *byte == b'.').count();
        let module = import.path[dots..].replace('.', "/");
        let folders: Vec<String> = match dots {
            0 => ancestors(split(from).0)
                .flat_map(|folder| [folder.to_string(), join(folder, "src")])
                .collect(),
            _ => vec![join(split(from).0, &"../".repeat(dots - 1))],
        };
        let find = |module: &str| {
            let endings = [".py", "/__init__.py", ".pyi", "/__init__.pyi"];
            let stems = folders.iter().map(|folder| join(folder, module)).filter(|stem| !stem.is_empty());
            stems
                .into_iter()
                .find_map(|stem| self.with_ending(&stem, &endings))
                .filter(|file| self.file(from) != Some(*file))
        };
        let package = find(&module);
        let submodules: Vec<FileId> = import
            .names
            .iter()
            .filter_map(|name| find(&format!("{module}/{}", name.replace('.', "/"))))
            .collect();
        // A name that is no module is taken from the package itself.
        let from_package = submodules.len() < import.names.len() || import.names.is_empty();
        let mut files: Vec<FileId> = package.filter(|_| from_package).into_iter().collect();
        files.extend(submodules);
        let top = module.split('/').next().unwrap_or_default().to_string();
        vec![match files.is_empty() {
            false => Meaning::Files(files),
            true if dots > 0 || top.is_empty() => Meaning::Nothing,
            true => Meaning::External(top),
        }]
    }

    pub(super) fn ecmascript(&self, from: &str, path: &str) -> Meaning {
        let path = path.split(['?', '#']).next().filter(|path| !path.is_empty()).unwrap_or(path);
        let path = path.strip_prefix("node:").unwrap_or(path);
        if path.starts_with('.') {
            let file = self.script(&join(split(from).0, path));
            return file.map_or(Meaning::Nothing, |file| Meaning::Files(vec![file]));
        }
        for (folder, manifest) in self.manifests.iter().filter(|(folder, _)| holds(folder, from)) {
            let Manifest::Paths(pairs) = manifest else { continue };
            let mut stems = pairs
                .iter()
                .filter_map(|(short, long)| Some(format!("{long}{}", path.strip_prefix(short.as_str())?)));
            if let Some(file) = stems.find_map(|stem| self.script(&join(folder, &stem))) {
                return Meaning::Files(vec![file]);
            }
        }
        let parts = if path.starts_with('@') { 2 } else { 1 };
        let name = path.split('/').take(parts).collect::<Vec<_>>().join("/");
        let package = self.named(|manifest| matches!(manifest, Manifest::Package(known) if *known == name));
        let inside = path.get(name.len()..).unwrap_or_default();
        let file = package.and_then(|folder| {
            let sources = [join(folder, inside), join(folder, &format!("src/{inside}"))];
            sources.iter().find_map(|stem| self.script(stem))
        });
        // The short names that most build tools are given, where no file declares them.
        let short = || {
            let rest = path.strip_prefix("@/").or_else(|| path.strip_prefix("~/"))?;
            ancestors(split(from).0).find_map(|folder| {
                self.script(&join(folder, &format!("src/{rest}")))
                    .or_else(|| self.script(&join(folder, rest)))
            })
        };
        file.or_else(short).map_or(Meaning::External(name), |file| Meaning::Files(vec![file]))
    }

    /// A script with what the import left out. `./a.js` may be written for the `a.ts` that becomes it.
    fn script(&self, stem: &str) -> Option<FileId> {
        let compiled = || {
            let (stem, ending) = stem.rsplit_once('.')?;
            matches!(ending, "js" | "jsx" | "mjs" | "cjs")
                .then(|| self.with_ending(stem, &[".ts", ".tsx", ".mts", ".cts"]))?
        };
        self.with_ending(stem, &SCRIPT_ENDINGS).or_else(compiled)
    }

    pub(super) fn go(&self, path: &str) -> Meaning {
        for (folder, manifest) in &self.manifests {
            let Manifest::GoModule(module) = manifest else { continue };
            let Some(rest) =
                path.strip_prefix(module.as_str()).filter(|rest| rest.is_empty() || rest.starts_with('/'))
            else {
                continue;
            };
            let files = self.folders.get(&*join(folder, rest)).into_iter().flatten();
            let sources = files.filter(|(path, _)| path.ends_with(".go") && !path.ends_with("_test.go"));
            return Meaning::Files(sources.map(|(_, file)| *file).collect());
        }
        // Only the standard library has paths that do not begin with a host.
        match path.split('/').next().is_some_and(|host| host.contains('.')) {
            true => Meaning::External(path.to_string()),
            false => Meaning::Nothing,
        }
    }

    /// `a.b.C`, `a.b.C.member`, `a.b.*`: a class is a file, a package a folder.
    pub(super) fn dotted(&self, language: &Language, from: &str, path: &str) -> Meaning {
        // PHP and Lua have both: names and paths.
        if path.contains('/') {
            return self.path(language, from, path);
        }
        let parts: Vec<&str> = path
            .split(['.', '\\', ':'])
            .filter(|part| !part.is_empty() && *part != "*" && *part != "_")
            .collect();
        for length in (1..=parts.len()).rev().take(2) {
            let stem = parts[..length].join("/");
            let mut endings = language.extensions().iter().map(|extension| format!("{stem}.{extension}"));
            if let Some(file) = endings.find_map(|ending| self.nearest(from, &ending)) {
                return Meaning::Files(vec![file]);
            }
        }
        let package = parts.join("/");
        let mut folders = self.folder_names.get(split(&package).1).into_iter().flatten();
        let folder = folders.find(|folder| ends_in(folder, &package));
        let files: Vec<FileId> = folder
            .and_then(|folder| self.folders.get(folder))
            .into_iter()
            .flatten()
            .map(|(_, file)| *file)
            .collect();
        match files.is_empty() {
            false => Meaning::Files(files),
            true => Meaning::External(parts[..parts.len().min(2)].join(".")),
        }
    }

    /// A path, relative to the file or to any folder; with or without its extension.
    pub(super) fn path(&self, language: &Language, from: &str, path: &str) -> Meaning {
        let path = path.trim_matches(['<', '>', '"', '\'']);
        let endings: Vec<String> = std::iter::once(String::new())
            .chain(language.extensions().iter().map(|extension| format!(".{extension}")))
            .collect();
        let beside =
            endings.iter().find_map(|ending| self.file(&join(split(from).0, &format!("{path}{ending}"))));
        let plain = path.trim_start_matches("./");
        let anywhere = || endings.iter().find_map(|ending| self.nearest(from, &format!("{plain}{ending}")));
        match beside.or_else(anywhere) {
            Some(file) => Meaning::Files(vec![file]),
            None if path.starts_with('.') => Meaning::Nothing,
            None => Meaning::External(path.to_string()),
        }
    }
}

/// The folder of a module's children: `a/b` for `a/b.rs` and for `a/b/mod.rs`.
fn rust_module(from: &str) -> String {
    let (folder, name) = split(from);
    match name {
        "mod.rs" | "lib.rs" | "main.rs" => folder.to_string(),
        _ => join(folder, name.strip_suffix(".rs").unwrap_or(name)),
    }
}

/// A folder and all above it, the top (empty) last.
fn ancestors(folder: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(folder), |folder| (!folder.is_empty()).then_some(split(folder).0))
}

/// Whether a file lies below a folder.
fn holds(folder: &str, file: &str) -> bool {
    folder.is_empty() || file.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}

fn ends_in(folder: &str, tail: &str) -> bool {
    !tail.is_empty() && folder.strip_suffix(tail).is_some_and(|head| head.is_empty() || head.ends_with('/'))
}

/// The paths of a use with braces: `a::{b, c::{d, e as f}}` is `a::b`, `a::c::d` and `a::c::e`.
///
/// Braces that do not match give what can be read; what follows ` as ` is left out.
pub(super) fn expand(path: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut prefixes: Vec<String> = vec![String::new()];
    let mut current = String::new();
    let mut end = |prefix: &str, current: &mut String| {
        let last = std::mem::take(current);
        let name = last.split(" as ").next().unwrap_or_default().trim();
        if !name.is_empty() {
            found.push(format!("{prefix}{name}"));
        }
    };
    for letter in path.chars() {
        let prefix = prefixes.last().cloned().unwrap_or_default();
        match letter {
            '{' => prefixes.push(format!("{prefix}{}", std::mem::take(&mut current).trim())),
            '}' | ',' => {
                end(&prefix, &mut current);
                if letter == '}' && prefixes.len() > 1 {
                    prefixes.pop();
                }
            }
            _ => current.push(letter),
        }
    }
    end(prefixes.last().map_or("", String::as_str), &mut current);
    found
}
