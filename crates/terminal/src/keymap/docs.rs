//! `docs/keys.md`, made from the table.

use super::{Action, KeyLayer, Keymap};

/// The document: every action with its default keys.
pub fn keys_document() -> String {
    let keymap = Keymap::default();
    let mut out = String::from(
        "# Keys\n\n\
         The keys of the page, the face of `hardpan` in a terminal. This page is made from the table in\n\
         `crates/terminal/src/keymap/action.rs`. Give an action other keys under `[keys]` in\n\
         `config.toml`, by its name:\n\n\
         ```toml\n[keys]\nexternal-editor = [\"ctrl-g\"]\nstop = [\"esc\", \"f12\"]\n```\n\n\
         They replace the default keys of that action. A key cannot mean two things in one place:\n\
         Hardpan says so and starts with the default keys.\n",
    );
    for layer in KeyLayer::ALL {
        out.push_str(&format!("\n## {}\n\n| key | does | name |\n|---|---|---|\n", layer.heading()));
        for action in Action::ALL.into_iter().filter(|action| action.layer() == layer) {
            let keys: Vec<String> = keymap.keys(action).iter().map(|key| format!("`{key}`")).collect();
            out.push_str(&format!("| {} | {} | `{}` |\n", keys.join(", "), action.help(), action.name()));
        }
    }
    out
}
