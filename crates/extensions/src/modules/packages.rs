//! Packages of `node_modules`: which file an import of one means.

use std::path::{Path, PathBuf};

use hardpan_files::plain_path;
use serde_json::Value;

use super::{ModuleSources, candidates};

/// How a file asks for another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ImportKind {
    /// `import`
    Import,
    /// `require()`
    Require,
}

impl ImportKind {
    fn has_condition(self, condition: &str) -> bool {
        match condition {
            "node" | "default" => true,
            "import" | "module-sync" => self == ImportKind::Import,
            "require" => self == ImportKind::Require,
            _ => false,
        }
    }
}

/// The file of a package that an import below `folder` means: `name`, `name/sub`, `@scope/name/sub`,
/// or `#name` of the package that the folder is part of.
pub(crate) fn find_in_packages(
    sources: &dyn ModuleSources,
    folder: &Path,
    name: &str,
    kind: ImportKind,
) -> Option<PathBuf> {
    if name.starts_with('#') {
        return find_private_import(sources, folder, name, kind);
    }
    let (package, rest) = split_name(name)?;
    let folders = folder.ancestors().filter(|folder| !folder.ends_with("node_modules"));
    folders.take_while(|folder| sources.may_hold_packages(folder)).find_map(|folder| {
        let package = folder.join("node_modules").join(package);
        find_in_package(sources, &package, rest, kind)
    })
}

/// The name of a package, and the path in it.
fn split_name(name: &str) -> Option<(&str, &str)> {
    let end_of_scope = if name.starts_with('@') { name.find('/')? + 1 } else { 0 };
    let end = name[end_of_scope..].find('/').map_or(name.len(), |at| end_of_scope + at);
    let is_plain = |part: &str| !part.is_empty() && part != "." && part != "..";
    name[..end].split('/').all(is_plain).then(|| (&name[..end], name[end..].trim_start_matches('/')))
}

fn manifest(sources: &dyn ModuleSources, folder: &Path) -> Option<Value> {
    let text = sources.read(&folder.join("package.json")).ok()?;
    serde_json::from_str(&text).ok()
}

fn find_in_package(
    sources: &dyn ModuleSources,
    package: &Path,
    rest: &str,
    kind: ImportKind,
) -> Option<PathBuf> {
    let manifest = manifest(sources, package);
    if let Some(exports) = manifest.as_ref().and_then(|manifest| manifest.get("exports")) {
        let wanted = if rest.is_empty() { ".".to_owned() } else { format!("./{rest}") };
        let target = match exports.as_object().filter(|map| map.keys().any(|key| key.starts_with('.'))) {
            Some(paths) => match_path(paths, &wanted, kind)?,
            None if rest.is_empty() => choose_target(exports, kind)?,
            None => return None,
        };
        return find_target(sources, package, &target);
    }
    if !rest.is_empty() {
        return find_file(sources, &package.join(rest));
    }
    let main = manifest.as_ref().and_then(|manifest| manifest["main"].as_str());
    let main = main.and_then(|main| find_file(sources, &plain_path(&package.join(main))));
    main.or_else(|| find_file(sources, &package.join("index")))
}

/// A name that a package gives to a file or a package for its own use.
fn find_private_import(
    sources: &dyn ModuleSources,
    folder: &Path,
    name: &str,
    kind: ImportKind,
) -> Option<PathBuf> {
    let mut folders = folder.ancestors().take_while(|folder| sources.may_hold_packages(folder));
    let (package, manifest) = folders.find_map(|folder| Some((folder, manifest(sources, folder)?)))?;
    let target = match_path(manifest["imports"].as_object()?, name, kind)?;
    // A private name that stands for a private one could stand for itself.
    match target.as_bytes() {
        [b'#', ..] => None,
        [b'.', b'/', ..] => find_target(sources, package, &target),
        _ => find_in_packages(sources, package, &target, kind),
    }
}

/// A file that a manifest names. It cannot leave its package.
fn find_target(sources: &dyn ModuleSources, package: &Path, target: &str) -> Option<PathBuf> {
    let path = plain_path(&package.join(target));
    path.starts_with(package).then(|| find_file(sources, &path)).flatten()
}

fn find_file(sources: &dyn ModuleSources, path: &Path) -> Option<PathBuf> {
    candidates(path).into_iter().find(|candidate| sources.is_file(candidate))
}

/// The longest name of a module, and the longest target of one, in bytes: no path is longer.
const MAX_NAME: usize = 4096;

/// The target of a path, which the map may have with a `*`; the most exact pattern counts.
fn match_path(paths: &serde_json::Map<String, Value>, wanted: &str, kind: ImportKind) -> Option<String> {
    // A long name in the place of many `*` would be a text without bounds.
    if wanted.len() > MAX_NAME {
        return None;
    }
    if let Some(target) = paths.get(wanted) {
        return choose_target(target, kind);
    }
    let patterns = paths.iter().filter_map(|(pattern, target)| {
        let (start, end) = pattern.split_once('*')?;
        let part = wanted.strip_prefix(start)?.strip_suffix(end)?;
        Some((start.len(), part, target))
    });
    let (_, part, target) = patterns.max_by_key(|(length, ..)| *length)?;
    choose_target(target, kind)
        .filter(|target| target.len() <= MAX_NAME)
        .map(|target| target.replace('*', part))
}

/// The first target whose conditions hold.
fn choose_target(target: &Value, kind: ImportKind) -> Option<String> {
    match target {
        Value::String(path) => Some(path.clone()),
        Value::Array(targets) => targets.iter().find_map(|target| choose_target(target, kind)),
        Value::Object(conditions) => conditions
            .iter()
            .filter(|(condition, _)| kind.has_condition(condition))
            .find_map(|(_, target)| choose_target(target, kind)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::io;

    use super::*;

    struct Files(BTreeMap<PathBuf, &'static str>);

    impl ModuleSources for Files {
        fn read(&self, path: &Path) -> io::Result<String> {
            self.0.get(path).map(|text| (*text).to_owned()).ok_or(io::ErrorKind::NotFound.into())
        }

        fn root(&self) -> &Path {
            Path::new("/ext")
        }
    }

    fn files() -> Files {
        let files = [
            ("/node_modules/outside/index.js", ""),
            ("/ext/node_modules/plain/index.js", ""),
            ("/ext/node_modules/plain/lib/deep.js", ""),
            ("/ext/node_modules/main/package.json", r#"{"main": "./lib/main"}"#),
            ("/ext/node_modules/main/lib/main.js", ""),
            (
                "/ext/node_modules/@a/both/package.json",
                r##"{"exports": {".": {"types": "./x.d.ts", "import": {"node": "./esm.mjs"}, "require": "./cjs.cjs"}, "./features/*.js": "./src/*.js", "./up": "../../secret.js"}, "imports": {"#inner": "./inner.js", "#own": "#own"}}"##,
            ),
            ("/ext/node_modules/@a/both/esm.mjs", ""),
            ("/ext/node_modules/@a/both/cjs.cjs", ""),
            ("/ext/node_modules/@a/both/inner.js", ""),
            ("/ext/node_modules/@a/both/src/x/y.js", ""),
            ("/ext/node_modules/@a/both/hidden.js", ""),
            ("/ext/secret.js", ""),
        ];
        Files(files.into_iter().map(|(path, text)| (path.into(), text)).collect())
    }

    fn find(folder: &str, name: &str, kind: ImportKind) -> Option<String> {
        let found = find_in_packages(&files(), Path::new(folder), name, kind)?;
        found.to_str().map(|path| path.replace("/ext/node_modules/", ""))
    }

    #[test]
    fn packages_are_found_from_any_folder_below_and_not_outside_of_the_extension() {
        let import = |folder, name| find(folder, name, ImportKind::Import);
        assert_eq!(import("/ext/src/deep", "plain").as_deref(), Some("plain/index.js"));
        assert_eq!(import("/ext", "plain/lib/deep").as_deref(), Some("plain/lib/deep.js"));
        assert_eq!(import("/ext/node_modules/plain", "main").as_deref(), Some("main/lib/main.js"));
        assert_eq!(import("/ext", "outside"), None);
        assert_eq!(import("/ext", "../outside"), None);
        assert_eq!(import("/ext", "none"), None);
    }

    #[test]
    fn a_manifest_says_what_a_package_exports() {
        assert_eq!(find("/ext", "@a/both", ImportKind::Import).as_deref(), Some("@a/both/esm.mjs"));
        assert_eq!(find("/ext", "@a/both", ImportKind::Require).as_deref(), Some("@a/both/cjs.cjs"));
        assert_eq!(
            find("/ext", "@a/both/features/x/y.js", ImportKind::Import).as_deref(),
            Some("@a/both/src/x/y.js")
        );
        assert_eq!(find("/ext", "@a/both/hidden.js", ImportKind::Import), None);
        assert_eq!(find("/ext", "@a/both/up", ImportKind::Import), None);
        let inner = find("/ext/node_modules/@a/both/src", "#inner", ImportKind::Import);
        assert_eq!(inner.as_deref(), Some("@a/both/inner.js"));
        assert_eq!(find("/ext/node_modules/@a/both/src", "#own", ImportKind::Import), None);
    }
}
