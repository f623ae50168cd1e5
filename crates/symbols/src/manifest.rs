//! What package files say about where names lead: `Cargo.toml`, `go.mod`, `package.json`, `tsconfig.json`.

use serde::Deserialize;

/// The part of a package file that imports need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Manifest {
    /// The name of a Rust crate, as code writes it.
    Crate(String),
    /// The path of a Go module.
    GoModule(String),
    /// The name of a JavaScript package.
    Package(String),
    /// TypeScript's short names: a prefix in front of `*`, and what it stands for.
    Paths(Vec<(String, String)>),
}

#[derive(Deserialize)]
struct CargoFile {
    package: Option<Named>,
    lib: Option<Named>,
}

#[derive(Deserialize)]
struct Named {
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
    /// Reads a package file; `None` for any other, and for one that cannot be read.
    pub fn of(path: &str, content: &[u8]) -> Option<Manifest> {
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
            "package.json" => Some(Manifest::Package(serde_json::from_str::<Named>(text).ok()?.name?)),
            "tsconfig.json" | "jsconfig.json" => {
                let file: TypeScriptFile = serde_json::from_str(&without_comments(text)).ok()?;
                let base = file.options.base_url.unwrap_or_default();
                let long = |long: &str| {
                    format!("{}/{}", base.trim_end_matches('/'), star(long)).trim_start_matches('/').into()
                };
                let paths = file.options.paths.iter();
                let mut pairs: Vec<(String, String)> =
                    paths.filter_map(|(short, to)| Some((star(short).into(), long(to.first()?)))).collect();
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

/// Without the star at the end.
fn star(path: &str) -> &str {
    path.strip_suffix('*').unwrap_or(path)
}

/// JSON as people write it: without comments, and without commas in front of a closing bracket.
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
        let of = |path: &str, text: &str| Manifest::of(path, text.as_bytes());
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
        assert_eq!(Manifest::of("tsconfig.json", text.as_bytes()), Some(Manifest::Paths(expected)));
    }
}
