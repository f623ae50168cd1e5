//! The commands that manifests name or imply.

use std::path::Path;

use serde_json::Value;

/// A command of the project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectCommand {
    /// What it is for: `build`, `test`, `lint`, `format`, `run`.
    pub purpose: &'static str,
    /// The command itself, to be run at the root or in the folder of its manifest.
    pub command: String,
    /// The manifest that says so.
    pub source: String,
}

/// Manifests deeper than this belong to parts of the project.
const MAX_DEPTH: usize = 2;
/// The most commands.
const MAX_COMMANDS: usize = 16;

/// Names of scripts and targets that are known, with their purposes.
const KNOWN: [(&str, &[&str]); 5] = [
    ("build", &["build", "compile"]),
    ("test", &["test", "tests", "check"]),
    ("lint", &["lint", "clippy", "typecheck", "vet"]),
    ("format", &["format", "fmt"]),
    ("run", &["start", "dev", "serve", "run"]),
];

/// The commands of all manifests near the root.
pub fn commands(files: &[String], read: &dyn Fn(&str) -> Option<String>) -> Vec<ProjectCommand> {
    let mut found: Vec<ProjectCommand> = Vec::new();
    let near = files.iter().filter(|file| file.matches('/').count() <= MAX_DEPTH);
    let mut near: Vec<&String> = near.collect();
    near.sort_by_key(|file| (file.matches('/').count(), file.as_str()));
    for path in near {
        let name = path.rsplit('/').next().unwrap_or(path);
        let folder = Path::new(path).parent().map(|folder| folder.display().to_string()).unwrap_or_default();
        let add = |purpose: &'static str, command: String| {
            let command = if folder.is_empty() { command } else { format!("cd {folder} && {command}") };
            ProjectCommand { purpose, command, source: path.clone() }
        };
        let is_known = found.iter().any(|command| command.source.rsplit('/').next() == Some(name));
        // Members of a workspace have the commands of its root.
        if is_known && !folder.is_empty() && name != "package.json" {
            continue;
        }
        let of_manifest: Vec<(&'static str, String)> = match name {
            "Cargo.toml" => fixed(&[
                ("build", "cargo build"),
                ("test", "cargo test"),
                ("lint", "cargo clippy --all-targets"),
                ("format", "cargo fmt"),
            ]),
            "go.mod" => {
                fixed(&[("build", "go build ./..."), ("test", "go test ./..."), ("lint", "go vet ./...")])
            }
            "package.json" => read(path).map(|text| npm_scripts(&text, &folder, files)).unwrap_or_default(),
            "pyproject.toml" => read(path).map(|text| python(&text, &folder, files)).unwrap_or_default(),
            "setup.py" | "tox.ini" | "pytest.ini" if !files.iter().any(|file| file == "pyproject.toml") => {
                fixed(&[("test", if name == "tox.ini" { "tox" } else { "python -m pytest" })])
            }
            "Makefile" | "GNUmakefile" => read(path).map(|text| targets(&text, "make")).unwrap_or_default(),
            "justfile" | "Justfile" => read(path).map(|text| targets(&text, "just")).unwrap_or_default(),
            "pom.xml" => fixed(&[("build", "mvn package"), ("test", "mvn test")]),
            "build.gradle" | "build.gradle.kts" => {
                let wrapper = files.iter().any(|file| *file == join(&folder, "gradlew"));
                let gradle = if wrapper { "./gradlew" } else { "gradle" };
                vec![("build", format!("{gradle} build")), ("test", format!("{gradle} test"))]
            }
            "Gemfile" => fixed(&[("test", "bundle exec rake")]),
            "composer.json" => fixed(&[("test", "composer test")]),
            "CMakeLists.txt" => fixed(&[
                ("build", "cmake -B build && cmake --build build"),
                ("test", "ctest --test-dir build"),
            ]),
            "mix.exs" => fixed(&[("build", "mix compile"), ("test", "mix test"), ("format", "mix format")]),
            "Package.swift" => fixed(&[("build", "swift build"), ("test", "swift test")]),
            name if name.ends_with(".sln") => fixed(&[("build", "dotnet build"), ("test", "dotnet test")]),
            _ => continue,
        };
        found.extend(of_manifest.into_iter().map(|(purpose, command)| add(purpose, command)));
    }
    let mut seen: Vec<String> = Vec::new();
    found.retain(|command| {
        let is_new = !seen.contains(&command.command);
        seen.push(command.command.clone());
        is_new
    });
    found.truncate(MAX_COMMANDS);
    found
}

fn fixed(commands: &[(&'static str, &str)]) -> Vec<(&'static str, String)> {
    commands.iter().map(|(purpose, command)| (*purpose, (*command).to_owned())).collect()
}

fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

/// The purpose of a script or target, by its name.
fn purpose(name: &str) -> Option<&'static str> {
    let known = KNOWN.iter().find(|(_, names)| names.contains(&name));
    known.map(|(purpose, _)| *purpose)
}

/// The scripts of a `package.json`, with the package manager whose lock file is there.
fn npm_scripts(text: &str, folder: &str, files: &[String]) -> Vec<(&'static str, String)> {
    let manifest: Value = serde_json::from_str(text).unwrap_or_default();
    let has = |name: &str| {
        files.iter().any(|file| *file == join(folder, name)) || files.iter().any(|file| file == name)
    };
    let runner = match () {
        () if has("pnpm-lock.yaml") => "pnpm run",
        () if has("yarn.lock") => "yarn",
        () if has("bun.lockb") || has("bun.lock") => "bun run",
        () => "npm run",
    };
    let scripts = manifest["scripts"].as_object().into_iter().flat_map(|scripts| scripts.keys());
    let plain = scripts.filter(|name| name.chars().all(|c| c.is_ascii_alphanumeric() || "_:-".contains(c)));
    let of_script = |name: &String| Some((purpose(name)?, format!("{runner} {name}")));
    by_purpose(plain.filter_map(of_script).collect())
}

/// The commands in the order of [`KNOWN`].
fn by_purpose(mut commands: Vec<(&'static str, String)>) -> Vec<(&'static str, String)> {
    commands.sort_by_key(|(purpose, _)| KNOWN.iter().position(|(known, _)| known == purpose));
    commands
}

/// The tools that a `pyproject.toml` configures.
fn python(text: &str, folder: &str, files: &[String]) -> Vec<(&'static str, String)> {
    let manifest: toml::Table = toml::from_str(text).unwrap_or_default();
    let tool = |name: &str| manifest.get("tool").and_then(|tools| tools.get(name)).is_some();
    let has = |name: &str| files.iter().any(|file| *file == join(folder, name));
    let prefix = match () {
        () if has("uv.lock") => "uv run ",
        () if has("poetry.lock") => "poetry run ",
        () => "",
    };
    let has_tests = files.iter().any(|file| file.split('/').any(|part| part.starts_with("test")));
    let mut commands = Vec::new();
    if tool("pytest") || has_tests {
        let pytest = if prefix.is_empty() { "python -m pytest" } else { "pytest" };
        commands.push(("test", format!("{prefix}{pytest}")));
    }
    if tool("ruff") {
        commands.push(("lint", format!("{prefix}ruff check")));
        commands.push(("format", format!("{prefix}ruff format")));
    }
    if tool("mypy") {
        commands.push(("lint", format!("{prefix}mypy .")));
    }
    if tool("black") {
        commands.push(("format", format!("{prefix}black .")));
    }
    commands
}

/// The targets of a makefile or justfile whose names say what they are for.
fn targets(text: &str, runner: &str) -> Vec<(&'static str, String)> {
    let mut found: Vec<(&'static str, String)> = Vec::new();
    for line in text.lines() {
        // A colon before an equals sign: `a := b` is a variable.
        let Some((name, rest)) = line.split_once(':').filter(|(_, rest)| !rest.starts_with('=')) else {
            continue;
        };
        let name = name.split_whitespace().next().unwrap_or_default();
        let is_target =
            !line.starts_with(char::is_whitespace) && !line.starts_with(['#', '.']) && !rest.contains(":=");
        if let Some(purpose) = purpose(name).filter(|_| is_target) {
            found.push((purpose, format!("{runner} {name}")));
        }
    }
    by_purpose(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let names: Vec<String> = files.iter().map(|(name, _)| (*name).to_owned()).collect();
        let read = |path: &str| Some(files.iter().find(|(name, _)| *name == path)?.1.to_owned());
        let line = |it: ProjectCommand| format!("{}: {} ({})", it.purpose, it.command, it.source);
        commands(&names, &read).into_iter().map(line).collect()
    }

    #[test]
    fn scripts_and_targets_are_those_that_manifests_have() {
        let package = r#"{"scripts": {"test": "jest", "build": "tsc", "evil; rm": "x", "other": "y"}}"#;
        assert_eq!(
            found(&[("package.json", package), ("pnpm-lock.yaml", "")]),
            ["build: pnpm run build (package.json)", "test: pnpm run test (package.json)"]
        );
        assert_eq!(
            found(&[("Makefile", "X := test: no\n.PHONY: test\ntest: build\n\tgo test\n# lint:\nfmt:\n")]),
            ["test: make test (Makefile)", "format: make fmt (Makefile)"]
        );
        assert_eq!(
            found(&[("pyproject.toml", "[tool.ruff]\n[tool.pytest.ini_options]\n"), ("uv.lock", "")])[..2],
            ["test: uv run pytest (pyproject.toml)", "lint: uv run ruff check (pyproject.toml)"]
        );
    }

    #[test]
    fn members_of_a_workspace_repeat_nothing_and_nothing_is_found_in_nothing() {
        let files = [("Cargo.toml", ""), ("crates/a/Cargo.toml", ""), ("web/package.json", "not json")];
        assert_eq!(found(&files).len(), 4, "{:?}", found(&files));
        assert_eq!(found(&[("a.txt", "")]), [""; 0]);
        let below = found(&[("api/go.mod", "")]);
        assert_eq!(below[1], "test: cd api && go test ./... (api/go.mod)");
    }
}
