//! [`Manifest`]: what package files (`Cargo.toml`, `go.mod`, `package.json`, `tsconfig.json`) say
//! about imports.

use serde::Deserialize;

/// The part of a package file that is needed to resolve imports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Manifest {
    /// Name of a Rust crate as code spells it, with underscores.
    Crate(String),
    /// Import path of a Go module.
    GoModule(String),
    /// Name of a JavaScript package, with its scope: `@a/b`.
    Package(String),
    /// Path aliases of TypeScript: the prefix before `*`, and what it stands for.
    Paths(Vec<(String, String)>),
}

#[derive(Deserialize)]
struct CargoFile {
    package: Option<PackageName>,
    lib: Option<PackageName>,
}

#[derive(Deserialize)]
struct PackageName {
    name: Option<String>,
}

#[derive(Deserialize)]
struct TypeScriptFile {
    #[serde(rename = "compilerOptions")]
    options: TypeScriptOptions,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TypeScriptOptions {
    base_url: Option<String>,
    #[serde(default)]
    paths: std::collections::BTreeMap<String, Vec<String>>,
}

impl Manifest {
    /// Parses a package file; `None` for any other file, and for one that cannot be parsed.
    pub fn parse(path: &str, content: &[u8]) -> Option<Manifest> {
        let text = std::str::from_utf8(content).ok()?;
        match path.rsplit('/').next()? {
            "Cargo.toml" => {
                let file: CargoFile = toml::from_str(text).ok()?;
                let name = file.lib.and_then(|lib| lib.name).or(file.package?.name)?;
                Some(Manifest::Crate(name.replace('-', "_")))
            }
            "go.mod" => {
                let module = text.lines().find_map(|line| line.trim().strip_prefix("module "))?;
                let module = module.split("//").next()?.trim().trim_matches('"');
                Some(Manifest::GoModule(module.into()))
            }
            "package.json" => Some(Manifest::Package(serde_json::from_str::<PackageName>(text).ok()?.name?)),
            "tsconfig.json" | "jsconfig.json" => {
                let file: TypeScriptFile = serde_json::from_str(&without_comments(text)).ok()?;
                let base = file.options.base_url.unwrap_or_default();
                let long = |long: &str| {
                    format!("{}/{}", base.trim_end_matches('/'), strip_star(long))
                        .trim_start_matches('/')
                        .into()
                };
                let paths = file.options.paths.iter();
                let mut pairs: Vec<(String, String)> = paths
                    .filter_map(|(short, to)| Some((strip_star(short).into(), long(to.first()?))))
                    .collect();
                if !base.is_empty() {
                    // The empty prefix: any name may be a path below the base.
                    pairs.push((String::new(), format!("{}/", base.trim_end_matches('/'))));
                }
                (!pairs.is_empty()).then_some(Manifest::Paths(pairs))
            }
            _ => None,
        }
    }
}

/// Removes the star at the end.
fn strip_star(path: &str) -> &str {
    path.strip_suffix('*').unwrap_or(path)
}

/// Removes comments, and commas before a closing bracket, from JSON as people write it.
fn without_comments(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    let mut in_string = false;
    while let Some(letter) = letters.next() {
        match (letter, letters.peek()) {
            ('\\', _) if in_string => plain.extend([Some('\\'), letters.next()].into_iter().flatten()),
            ('"', _) => {
                in_string = !in_string;
                plain.push('"');
            }
            ('/', Some('/')) if !in_string => while letters.next_if(|letter| *letter != '\n').is_some() {},
            ('/', Some('*')) if !in_string => {
                let mut last = ' ';
                for letter in letters.by_ref().skip(1) {
                    if (last, letter) == ('*', '/') {
                        break;
                    }
                    last = letter;
                }
            }
            ('}' | ']', _) if !in_string => {
                let end = plain.trim_end().trim_end_matches(',').len();
                plain.truncate(end);
                plain.push(letter);
            }
            _ => plain.push(letter),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn package_files_tell_their_names() {
        let of = |path: &str, text: &str| Manifest::parse(path, text.as_bytes());
        assert_eq!(of("a/Cargo.toml", "[package]\nname = \"a-b\"\n"), Some(Manifest::Crate("a_b".into())));
        assert_eq!(of("Cargo.toml", "[workspace]\n"), None);
        assert_eq!(
            of("go.mod", "// x\nmodule example.com/a // y\n"),
            Some(Manifest::GoModule("example.com/a".into()))
        );
        assert_eq!(of("package.json", r#"{"name": "@a/b"}"#), Some(Manifest::Package("@a/b".into())));
        assert_eq!(of("package.json", "{"), None);
        assert_eq!(of("other.json", r#"{"name": "a"}"#), None);
    }

    #[test]
    fn a_typescript_file_may_have_comments() {
        let text = r#"{ // one
            "compilerOptions": { /* two */ "baseUrl": "./src", "paths": { "@app/*": ["app/*"], "x": ["//y"], }, },
        }"#;
        let pair = |short: &str, long: &str| (short.to_string(), long.to_string());
        let expected = vec![pair("@app/", "./src/app/"), pair("x", "./src///y"), pair("", "./src/")];
        assert_eq!(Manifest::parse("tsconfig.json", text.as_bytes()), Some(Manifest::Paths(expected)));
    }
}
