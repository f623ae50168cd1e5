use super::*;
use crate::language::Languages;

/// Numbers are places in the list; package files have their content.
fn meanings(files: &[(&str, &str)], from: &str, path: &str, names: &[&str]) -> Vec<String> {
    let mut paths = PathLookup::default();
    for (id, (path, content)) in files.iter().enumerate() {
        paths.insert(path, u32::try_from(id).unwrap(), Manifest::parse(path, content.as_bytes()).as_ref());
    }
    let languages = Languages::builtin();
    let language = languages.get(languages.detect(from).unwrap()).unwrap();
    let (form, path) = match path.strip_prefix("mod ") {
        Some(name) => (ImportForm::Submodule, name),
        None => (ImportForm::Use, path),
    };
    let import =
        Import { path: path.into(), names: names.iter().map(|name| Box::from(*name)).collect(), form };
    let shown = |meaning: ImportResolution| match meaning {
        ImportResolution::Files(ids) => ids.iter().map(|id| files[*id as usize].0.to_string()).collect(),
        ImportResolution::External(name) => vec![format!("external {name}")],
        ImportResolution::Ignored => vec![],
    };
    paths.resolve(language, from, &import).into_iter().flat_map(shown).collect()
}

#[test]
fn rust_paths_lead_to_the_longest_module_that_is_a_file() {
    let files = [
        ("crates/a/Cargo.toml", "[package]\nname = \"my-a\""),
        ("crates/a/src/lib.rs", ""),
        ("crates/a/src/net.rs", ""),
        ("crates/a/src/net/retry.rs", ""),
        ("crates/a/src/old/mod.rs", ""),
        ("crates/b/src/main.rs", ""),
        ("crates/a/tests/common/mod.rs", ""),
    ];
    let from = |from: &str, path: &str| meanings(&files, from, path, &[]);
    assert_eq!(from("crates/a/src/old/mod.rs", "crate::net::retry::Policy"), ["crates/a/src/net/retry.rs"]);
    assert_eq!(from("crates/a/src/net/retry.rs", "super::Client"), ["crates/a/src/net.rs"]);
    assert_eq!(from("crates/a/src/net/retry.rs", "super::super::Thing"), ["crates/a/src/lib.rs"]);
    assert_eq!(
        from("crates/a/src/net.rs", "crate::{old::A, net::{self, retry::B as C}}"),
        ["crates/a/src/old/mod.rs", "crates/a/src/net.rs", "crates/a/src/net/retry.rs"]
    );
    assert_eq!(from("crates/b/src/main.rs", "my_a::net::Client"), ["crates/a/src/net.rs"]);
    assert_eq!(from("crates/b/src/main.rs", "tokio::sync"), ["external tokio"]);
    assert_eq!(from("crates/b/src/main.rs", "std::fmt"), Vec::<String>::new());
    assert_eq!(from("crates/a/src/net.rs", "mod retry"), ["crates/a/src/net/retry.rs"]);
    assert_eq!(from("crates/a/tests/it.rs", "mod common"), ["crates/a/tests/common/mod.rs"]);
}

#[test]
fn python_modules_are_relative_or_below_any_folder_above() {
    let files = [
        ("app/__init__.py", ""),
        ("app/net/__init__.py", ""),
        ("app/net/retry.py", ""),
        ("src/lib/x.py", ""),
    ];
    let from = |from: &str, path: &str, names: &[&str]| meanings(&files, from, path, names);
    assert_eq!(from("app/net/retry.py", "..", &["net"]), ["app/net/__init__.py"]);
    assert_eq!(
        from("app/main.py", ".net", &["retry", "Client"]),
        ["app/net/__init__.py", "app/net/retry.py"]
    );
    assert_eq!(from("tools/x.py", "app.net.retry", &["Policy"]), ["app/net/retry.py"]);
    assert_eq!(from("tools/x.py", "lib.x", &[]), ["src/lib/x.py"]);
    assert_eq!(from("tools/x.py", "os.path", &[]), ["external os"]);
    assert_eq!(from("tools/x.py", ".gone", &["a"]), Vec::<String>::new());
}

#[test]
fn script_paths_may_leave_out_extension_and_index() {
    let files = [
        ("package.json", r#"{"name": "root"}"#),
        ("packages/ui/package.json", r#"{"name": "@x/ui"}"#),
        ("packages/ui/src/index.ts", ""),
        ("packages/ui/src/button.tsx", ""),
        ("web/tsconfig.json", r#"{"compilerOptions": {"paths": {"%lib/*": ["./lib/*"]}}}"#),
        ("web/lib/a.ts", ""),
        ("web/b/index.js", ""),
        ("src/deep/c.vue.ts", ""),
    ];
    let from = |from: &str, path: &str| meanings(&files, from, path, &[]);
    assert_eq!(from("web/main.ts", "./lib/a"), ["web/lib/a.ts"]);
    assert_eq!(from("web/main.ts", "./lib/a.js"), ["web/lib/a.ts"]);
    assert_eq!(from("web/lib/a.ts", "../b"), ["web/b/index.js"]);
    assert_eq!(from("web/main.ts", "@x/ui"), ["packages/ui/src/index.ts"]);
    assert_eq!(from("web/main.ts", "@x/ui/button"), ["packages/ui/src/button.tsx"]);
    assert_eq!(from("web/main.ts", "%lib/a"), ["web/lib/a.ts"]);
    assert_eq!(from("web/main.ts", "@/deep/c.vue"), ["src/deep/c.vue.ts"]);
    assert_eq!(from("web/main.ts", "@scope/other/deep"), ["external @scope/other"]);
    assert_eq!(from("web/main.ts", "./gone"), Vec::<String>::new());
}

#[test]
fn a_go_import_is_a_folder_of_the_module() {
    let files = [
        ("go.mod", "module example.com/m\n"),
        ("net/a.go", ""),
        ("net/b.go", ""),
        ("net/b_test.go", ""),
        ("main.go", ""),
    ];
    let from = |path: &str| meanings(&files, "main.go", path, &[]);
    assert_eq!(from("example.com/m/net"), ["net/a.go", "net/b.go"]);
    assert_eq!(from("example.com/m"), ["main.go"]);
    assert_eq!(from("example.com/mother"), ["external example.com/mother"]);
    assert_eq!(from("fmt"), Vec::<String>::new());
}

#[test]
fn broken_uses_give_what_can_be_read() {
    assert_eq!(rules::expand_use_tree("a::{b, c"), ["a::b", "a::c"]);
    assert_eq!(rules::expand_use_tree("}}a,,{"), ["a"]);
    assert_eq!(rules::expand_use_tree(""), Vec::<String>::new());
}

#[test]
fn the_nearest_file_of_several_is_meant() {
    let mut paths = PathLookup::default();
    for (id, path) in ["a/x/util.h", "b/x/util.h", "util.h"].iter().enumerate() {
        paths.insert(path, u32::try_from(id).unwrap(), None);
    }
    assert_eq!(paths.find_nearest("b/main.c", "x/util.h"), Some(1));
    assert_eq!(paths.find_nearest("b/main.c", "util.h"), Some(1));
    assert_eq!(paths.find_nearest("c.c", "util.h"), Some(2));
    paths.remove("b/x/util.h");
    assert_eq!(paths.find_nearest("b/main.c", "x/util.h"), Some(0));
    assert_eq!(paths.find_nearest("b/main.c", "lutil.h"), None);
}
