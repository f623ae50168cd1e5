//! An image from the clipboard, stored as a file that a prompt can mention.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Programs that print an image from the clipboard, with their arguments.
const PROGRAMS: [(&str, &[&str]); 3] = [
    ("wl-paste", &["--no-newline", "--type", "image/png"]),
    ("xclip", &["-selection", "clipboard", "-target", "image/png", "-out"]),
    ("pngpaste", &["-"]),
];

/// What every PNG file begins with.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

/// Why there is no image.
#[derive(Debug, thiserror::Error)]
pub enum ClipboardError {
    #[error("no program reads images from the clipboard here: install wl-clipboard, xclip or pngpaste")]
    NoProgram,
    #[error("the clipboard holds no image")]
    NoImage,
    #[error("the image cannot be stored")]
    Store(#[from] std::io::Error),
}

/// Stores the image of the clipboard in `folder`, and returns where.
pub fn store_image(folder: &Path) -> Result<PathBuf, ClipboardError> {
    let mut has_program = false;
    for (program, arguments) in PROGRAMS {
        let ran = Command::new(program).args(arguments).stdin(Stdio::null()).stderr(Stdio::null()).output();
        let Ok(output) = ran else { continue };
        has_program = true;
        if output.stdout.starts_with(PNG) {
            hardpan_files::create_private_folder(folder)?;
            let number = std::fs::read_dir(folder)?.count() + 1;
            let path = folder.join(format!("clipboard-{}-{number}.png", std::process::id()));
            std::fs::write(&path, output.stdout)?;
            return Ok(path);
        }
    }
    Err(if has_program { ClipboardError::NoImage } else { ClipboardError::NoProgram })
}
