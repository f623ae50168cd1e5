//! The files of a new extension: a typed skeleton, and the declarations of the whole API.

mod declarations; // hardpan.d.ts, made of the types
mod typescript; // TypePrinter: schemas as types of TypeScript

use std::path::{Path, PathBuf};
use std::{fs, io};

use thiserror::Error;

pub use super::api::{EVENTS, EventTyping};
pub use declarations::declarations;

/// `hardpan.d.ts`, as a new extension gets it: made of the types by a test.
pub const DECLARATIONS: &str = include_str!("typings/hardpan.d.ts");

/// Why a new extension was not written.
#[derive(Debug, Error)]
pub enum SkeletonError {
    /// The name is no plain name of a folder.
    #[error("{0:?} cannot be the name of an extension: use letters, digits, `-` and `_`")]
    Name(String),
    /// There is such a folder.
    #[error("{} is already there", .0.display())]
    Exists(PathBuf),
    /// A file cannot be written.
    #[error("{} cannot be written", path.display())]
    NotWritten {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

const INDEX: &str = r#"import type { ExtensionAPI } from "@mariozechner/pi-coding-agent";
import { Type } from "typebox";

export default function (pi: ExtensionAPI) {
  // Asked before every call of a tool; a reply with `block` stops it.
  pi.on("tool_call", async (event, ctx) => {
    if (event.toolName === "bash" && /\bsudo\b/.test(event.input.command)) {
      const isAllowed = await ctx.ui.confirm("Run it as root?", event.input.command);
      if (!isAllowed) return { block: true, reason: "The user does not want sudo" };
    }
  });

  // A tool that the model can call. It costs the tokens of its description in every request.
  pi.registerTool<{ text: string }>({
    name: "NAME_count",
    label: "Count",
    description: "Counts the words of a text.",
    parameters: Type.Object({ text: Type.String({ description: "The text" }) }),
    async execute(_toolCallId, { text }) {
      const words = text.split(/\s+/).filter(Boolean).length;
      return { content: [{ type: "text", text: `${words} words` }] };
    },
  });

  // A command that you type: /NAME
  pi.registerCommand("NAME", {
    description: "Says hello",
    handler: async (args, ctx) => ctx.ui.notify(`Hello ${args || "there"}`),
  });
}
"#;

const MANIFEST: &str = r#"{
  "name": "NAME",
  "version": "0.1.0",
  "type": "module",
  "keywords": ["pi-package"],
  "pi": { "extensions": ["./index.ts"] },
  "hardpan": { "permissions": { "network": [], "exec": [], "env": [], "models": false } }
}
"#;

const COMPILER_OPTIONS: &str = r#"{
  "compilerOptions": {
    "target": "ES2023",
    "lib": ["ES2023", "DOM", "DOM.Iterable"],
    "module": "ESNext",
    "moduleResolution": "Bundler",
    "strict": true,
    "noEmit": true,
    "skipLibCheck": false,
    "types": []
  },
  "include": ["*.ts"]
}
"#;

/// Writes a new extension into a folder of this name. Returns the folder.
pub fn write_skeleton(parent: &Path, name: &str) -> Result<PathBuf, SkeletonError> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() || name.starts_with('-') || !name.chars().all(is_plain) {
        return Err(SkeletonError::Name(name.to_owned()));
    }
    let folder = parent.join(name);
    if folder.exists() {
        return Err(SkeletonError::Exists(folder));
    }
    let failed = |path: &Path| {
        let path = path.to_owned();
        |source| SkeletonError::NotWritten { path, source }
    };
    fs::create_dir_all(&folder).map_err(failed(&folder))?;
    let index =
        INDEX.replace("NAME_count", &format!("{}_count", name.replace('-', "_"))).replace("NAME", name);
    let files = [
        ("index.ts", index),
        ("package.json", MANIFEST.replace("NAME", name)),
        ("tsconfig.json", COMPILER_OPTIONS.to_owned()),
        ("hardpan.d.ts", DECLARATIONS.to_owned()),
    ];
    for (file, text) in files {
        let path = folder.join(file);
        fs::write(&path, text).map_err(failed(&path))?;
    }
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skeleton_is_not_written_over_anything() {
        let folder = tempfile::tempdir().unwrap();
        write_skeleton(folder.path(), "greeter").unwrap();
        assert!(matches!(write_skeleton(folder.path(), "greeter"), Err(SkeletonError::Exists(_))));
        for name in ["", "../up", "a b", "-x"] {
            assert!(matches!(write_skeleton(folder.path(), name), Err(SkeletonError::Name(_))), "{name}");
        }
    }
}
