//! The tree-sitter grammars: [`language`] maps a name to a compiled [`Language`].
//!
//! Nothing else is in this crate, so that editing queries or the index never recompiles a grammar.
//! Five grammars are so large (OCaml alone is 63 MB of C) that they are behind cargo features, off
//! by default; [`language`] returns `None` for them if they were left out. A build for fuzzing
//! (`--cfg fuzzing`) has none at all.
//!
//! ```
//! assert!(hardpan_grammars::language("rust").is_some());
//! assert!(hardpan_grammars::language("klingon").is_none());
//! ```

pub use tree_sitter::Language;

/// The grammar of this name; `None` if it is unknown or was not compiled in.
#[cfg(fuzzing)]
pub fn language(_: &str) -> Option<Language> {
    None
}

/// The grammar of this name; `None` if it is unknown or was not compiled in.
#[cfg(not(fuzzing))]
pub fn language(name: &str) -> Option<Language> {
    let grammar = match name {
        "bash" => tree_sitter_bash::LANGUAGE,
        "c" => tree_sitter_c::LANGUAGE,
        "cpp" => tree_sitter_cpp::LANGUAGE,
        "css" => tree_sitter_css::LANGUAGE,
        "elixir" => tree_sitter_elixir::LANGUAGE,
        "go" => tree_sitter_go::LANGUAGE,
        "haskell" => tree_sitter_haskell::LANGUAGE,
        "html" => tree_sitter_html::LANGUAGE,
        "java" => tree_sitter_java::LANGUAGE,
        "javascript" => tree_sitter_javascript::LANGUAGE,
        "json" => tree_sitter_json::LANGUAGE,
        "lua" => tree_sitter_lua::LANGUAGE,
        "markdown" => tree_sitter_md::LANGUAGE,
        "php" => tree_sitter_php::LANGUAGE_PHP,
        "python" => tree_sitter_python::LANGUAGE,
        "ruby" => tree_sitter_ruby::LANGUAGE,
        "rust" => tree_sitter_rust::LANGUAGE,
        "toml" => tree_sitter_toml_ng::LANGUAGE,
        "tsx" => tree_sitter_typescript::LANGUAGE_TSX,
        "typescript" => tree_sitter_typescript::LANGUAGE_TYPESCRIPT,
        "yaml" => tree_sitter_yaml::LANGUAGE,
        "zig" => tree_sitter_zig::LANGUAGE,
        #[cfg(feature = "c-sharp")]
        "c-sharp" => tree_sitter_c_sharp::LANGUAGE,
        #[cfg(feature = "kotlin")]
        "kotlin" => tree_sitter_kotlin_ng::LANGUAGE,
        #[cfg(feature = "ocaml")]
        "ocaml" => tree_sitter_ocaml::LANGUAGE_OCAML,
        #[cfg(feature = "ocaml")]
        "ocaml-interface" => tree_sitter_ocaml::LANGUAGE_OCAML_INTERFACE,
        #[cfg(feature = "scala")]
        "scala" => tree_sitter_scala::LANGUAGE,
        #[cfg(feature = "swift")]
        "swift" => tree_sitter_swift::LANGUAGE,
        _ => return None,
    };
    Some(grammar.into())
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_default_grammar_loads_into_a_parser() {
        let names = [
            "bash",
            "c",
            "cpp",
            "css",
            "elixir",
            "go",
            "haskell",
            "html",
            "java",
            "javascript",
            "json",
            "lua",
            "markdown",
            "php",
            "python",
            "ruby",
            "rust",
            "toml",
            "tsx",
            "typescript",
            "yaml",
            "zig",
        ];
        for name in names {
            let language = super::language(name).unwrap_or_else(|| panic!("{name} is compiled in"));
            tree_sitter::Parser::new()
                .set_language(&language)
                .unwrap_or_else(|error| panic!("{name}: {error}"));
        }
    }
}
