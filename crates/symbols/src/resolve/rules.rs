//! The import rules of each family of languages.

use super::{FileId, ImportResolution, PathLookup, join_path, split_path};
use crate::language::Language;
use crate::manifest::Manifest;
use crate::outline::Import;

/// Endings that an import of JavaScript or TypeScript may omit, in the order in which they are
/// tried.
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

impl PathLookup {
    /// Resolves `mod name;`.
    pub(super) fn resolve_rust_submodule(&self, from: &str, name: &str) -> ImportResolution {
        let name = name.trim_start_matches("r#");
        let stem = join_path(&rust_module_folder(from), name);
        let file = self.find_with_ending(&stem, &[".rs", "/mod.rs"]);
        // Modules of a crate root (tests, examples) lie beside it.
        let beside = || self.find_with_ending(&join_path(split_path(from).0, name), &[".rs", "/mod.rs"]);
        file.or_else(beside).map_or(ImportResolution::Ignored, |file| ImportResolution::Files(vec![file]))
    }

    /// Resolves `use` of one path: `crate::a::B`.
    pub(super) fn resolve_rust(&self, from: &str, path: &str) -> ImportResolution {
        let path = path.trim_start_matches("::");
        let plain = |part| str::trim(part).trim_start_matches("r#");
        let mut parts: Vec<&str> = path.split("::").map(plain).collect();
        let module = rust_module_folder(from);
        let base = match parts.first().copied().unwrap_or_default() {
            "crate" => self.rust_crate_root(from),
            "self" => module,
            "super" => {
                let up = parts.iter().take_while(|part| **part == "super").count();
                parts.drain(..up - 1);
                join_path(&module, &"../".repeat(up))
            }
            "std" | "core" | "alloc" | "" => return ImportResolution::Ignored,
            name => {
                if let Some(folder) = self
                    .package_folder(|manifest| matches!(manifest, Manifest::Crate(known) if known == name))
                {
                    join_path(folder, "src")
                } else if self.find_with_ending(&join_path(&module, name), &[".rs", "/mod.rs"]).is_some() {
                    join_path(&module, name)
                } else {
                    return ImportResolution::External(name.to_string());
                }
            }
        };
        // The longest prefix that is a file; the rest is inside it.
        let rest = &parts[1..];
        for length in (0..=rest.len()).rev() {
            let stem = join_path(&base, &rest[..length].join("/"));
            let endings = ["/mod.rs", "/lib.rs", "/main.rs"];
            let file = (!stem.is_empty()).then(|| self.find_with_ending(&stem, &[".rs"])).flatten();
            if let Some(file) =
                file.or_else(|| endings.iter().find_map(|end| self.find_file(&join_path(&stem, &end[1..]))))
            {
                return ImportResolution::Files(vec![file]);
            }
        }
        ImportResolution::Ignored
    }

    /// Folder of the crate's root module: the nearest one upwards that contains it.
    fn rust_crate_root(&self, from: &str) -> String {
        let holds = |folder: &&str| {
            ["lib.rs", "main.rs"].iter().any(|name| self.find_file(&join_path(folder, name)).is_some())
        };
        ancestors(split_path(from).0).find(holds).unwrap_or_default().to_string()
    }

    /// Folder of the deepest package file that matches.
    fn package_folder(&self, fits: impl Fn(&Manifest) -> bool) -> Option<&str> {
        self.manifests.iter().find(|(_, manifest)| fits(manifest)).map(|(folder, _)| &**folder)
    }

    pub(super) fn resolve_python(&self, from: &str, import: &Import) -> Vec<ImportResolution> {
        let dots = import.path.bytes().take_while(|byte| *byte == b'.').count();
        let module = import.path[dots..].replace('.', "/");
        let folders: Vec<String> = match dots {
            0 => ancestors(split_path(from).0)
                .flat_map(|folder| [folder.to_string(), join_path(folder, "src")])
                .collect(),
            _ => vec![join_path(split_path(from).0, &"../".repeat(dots - 1))],
        };
        let find = |module: &str| {
            let endings = [".py", "/__init__.py", ".pyi", "/__init__.pyi"];
            let stems =
                folders.iter().map(|folder| join_path(folder, module)).filter(|stem| !stem.is_empty());
            stems
                .into_iter()
                .find_map(|stem| self.find_with_ending(&stem, &endings))
                .filter(|file| self.find_file(from) != Some(*file))
        };
        let package = find(&module);
        let submodules: Vec<FileId> = import
            .names
            .iter()
            .filter_map(|name| find(&format!("{module}/{}", name.replace('.', "/"))))
            .collect();
        // A name that is not a module comes from the package itself.
        let from_package = submodules.len() < import.names.len() || import.names.is_empty();
        let mut files: Vec<FileId> = package.filter(|_| from_package).into_iter().collect();
        files.extend(submodules);
        let top = module.split('/').next().unwrap_or_default().to_string();
        vec![match files.is_empty() {
            false => ImportResolution::Files(files),
            true if dots > 0 || top.is_empty() => ImportResolution::Ignored,
            true => ImportResolution::External(top),
        }]
    }

    pub(super) fn resolve_ecmascript(&self, from: &str, path: &str) -> ImportResolution {
        let path = path.split(['?', '#']).next().filter(|path| !path.is_empty()).unwrap_or(path);
        let path = path.strip_prefix("node:").unwrap_or(path);
        if path.starts_with('.') {
            let file = self.find_script(&join_path(split_path(from).0, path));
            return file.map_or(ImportResolution::Ignored, |file| ImportResolution::Files(vec![file]));
        }
        for (folder, manifest) in self.manifests.iter().filter(|(folder, _)| folder_contains(folder, from)) {
            let Manifest::Paths(pairs) = manifest else { continue };
            let mut stems = pairs
                .iter()
                .filter_map(|(short, long)| Some(format!("{long}{}", path.strip_prefix(short.as_str())?)));
            if let Some(file) = stems.find_map(|stem| self.find_script(&join_path(folder, &stem))) {
                return ImportResolution::Files(vec![file]);
            }
        }
        let parts = if path.starts_with('@') { 2 } else { 1 };
        let name = path.split('/').take(parts).collect::<Vec<_>>().join("/");
        let package =
            self.package_folder(|manifest| matches!(manifest, Manifest::Package(known) if *known == name));
        let inside = path.get(name.len()..).unwrap_or_default();
        let file = package.and_then(|folder| {
            let sources = [join_path(folder, inside), join_path(folder, &format!("src/{inside}"))];
            sources.iter().find_map(|stem| self.find_script(stem))
        });
        // Aliases that are common in build tools, even if no file declares them.
        let short = || {
            let rest = path.strip_prefix("@/").or_else(|| path.strip_prefix("~/"))?;
            ancestors(split_path(from).0).find_map(|folder| {
                self.find_script(&join_path(folder, &format!("src/{rest}")))
                    .or_else(|| self.find_script(&join_path(folder, rest)))
            })
        };
        file.or_else(short)
            .map_or(ImportResolution::External(name), |file| ImportResolution::Files(vec![file]))
    }

    /// Finds a script with what the import omits. `./a.js` may stand for the `a.ts` it is compiled
    /// from.
    fn find_script(&self, stem: &str) -> Option<FileId> {
        let compiled = || {
            let (stem, ending) = stem.rsplit_once('.')?;
            matches!(ending, "js" | "jsx" | "mjs" | "cjs")
                .then(|| self.find_with_ending(stem, &[".ts", ".tsx", ".mts", ".cts"]))?
        };
        self.find_with_ending(stem, &SCRIPT_ENDINGS).or_else(compiled)
    }

    pub(super) fn resolve_go(&self, path: &str) -> ImportResolution {
        for (folder, manifest) in &self.manifests {
            let Manifest::GoModule(module) = manifest else { continue };
            let Some(rest) =
                path.strip_prefix(module.as_str()).filter(|rest| rest.is_empty() || rest.starts_with('/'))
            else {
                continue;
            };
            let files = self.folders.get(&*join_path(folder, rest)).into_iter().flatten();
            let sources = files.filter(|(path, _)| path.ends_with(".go") && !path.ends_with("_test.go"));
            return ImportResolution::Files(sources.map(|(_, file)| *file).collect());
        }
        // Only paths of the standard library do not begin with a host.
        match path.split('/').next().is_some_and(|host| host.contains('.')) {
            true => ImportResolution::External(path.to_string()),
            false => ImportResolution::Ignored,
        }
    }

    /// `a.b.C`, `a.b.C.member`, `a.b.*`: a class is a file, a package a folder.
    pub(super) fn resolve_dotted(&self, language: &Language, from: &str, path: &str) -> ImportResolution {
        // PHP and Lua have both: names and paths.
        if path.contains('/') {
            return self.resolve_path(language, from, path);
        }
        let parts: Vec<&str> = path
            .split(['.', '\\', ':'])
            .filter(|part| !part.is_empty() && *part != "*" && *part != "_")
            .collect();
        for length in (1..=parts.len()).rev().take(2) {
            let stem = parts[..length].join("/");
            let mut endings = language.extensions().iter().map(|extension| format!("{stem}.{extension}"));
            if let Some(file) = endings.find_map(|ending| self.find_nearest(from, &ending)) {
                return ImportResolution::Files(vec![file]);
            }
        }
        let package = parts.join("/");
        let mut folders = self.folder_names.get(split_path(&package).1).into_iter().flatten();
        let folder = folders.find(|folder| ends_in(folder, &package));
        let files: Vec<FileId> = folder
            .and_then(|folder| self.folders.get(folder))
            .into_iter()
            .flatten()
            .map(|(_, file)| *file)
            .collect();
        match files.is_empty() {
            false => ImportResolution::Files(files),
            true => ImportResolution::External(parts[..parts.len().min(2)].join(".")),
        }
    }

    /// Resolves a path relative to the file or to any folder, with or without its extension.
    pub(super) fn resolve_path(&self, language: &Language, from: &str, path: &str) -> ImportResolution {
        let path = path.trim_matches(['<', '>', '"', '\'']);
        let endings: Vec<String> = std::iter::once(String::new())
            .chain(language.extensions().iter().map(|extension| format!(".{extension}")))
            .collect();
        let beside = endings
            .iter()
            .find_map(|ending| self.find_file(&join_path(split_path(from).0, &format!("{path}{ending}"))));
        let plain = path.trim_start_matches("./");
        let anywhere =
            || endings.iter().find_map(|ending| self.find_nearest(from, &format!("{plain}{ending}")));
        match beside.or_else(anywhere) {
            Some(file) => ImportResolution::Files(vec![file]),
            None if path.starts_with('.') => ImportResolution::Ignored,
            None => ImportResolution::External(path.to_string()),
        }
    }
}

/// Folder of a module's children: `a/b` for `a/b.rs` and for `a/b/mod.rs`.
fn rust_module_folder(from: &str) -> String {
    let (folder, name) = split_path(from);
    match name {
        "mod.rs" | "lib.rs" | "main.rs" => folder.to_string(),
        _ => join_path(folder, name.strip_suffix(".rs").unwrap_or(name)),
    }
}

/// A folder and all folders above it; the top level (empty) comes last.
fn ancestors(folder: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(folder), |folder| (!folder.is_empty()).then_some(split_path(folder).0))
}

/// Whether a file is below a folder.
fn folder_contains(folder: &str, file: &str) -> bool {
    folder.is_empty() || file.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}

fn ends_in(folder: &str, tail: &str) -> bool {
    !tail.is_empty() && folder.strip_suffix(tail).is_some_and(|head| head.is_empty() || head.ends_with('/'))
}

/// Expands a `use` with braces: `a::{b, c::{d, e as f}}` gives `a::b`, `a::c::d` and `a::c::e`.
///
/// Unbalanced braces give what can be read; ` as ` and what follows it is dropped.
pub(super) fn expand_use_tree(path: &str) -> Vec<String> {
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
