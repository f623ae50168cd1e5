//! Texts of a wanted length, and an image.

use hardpan_prompt::Image;
use serde_json::json;

/// About this many tokens of text about a word.
pub fn long_text(about: &str, tokens: usize) -> String {
    let words: Vec<String> = (0..tokens / 3).map(|n| format!("{about} {n}")).collect();
    words.join("\n")
}

/// This many lines about a word.
pub fn numbered_lines(word: &str, lines: usize) -> String {
    (0..lines).map(|line| format!("{word} in line {line}\n")).collect()
}

/// Text that looks like code, different for every `part`.
pub fn code(part: usize, lines: usize) -> String {
    let line = |n: usize| {
        format!("    let value_{n} = compute({part}, {n}) + offset_{}; // step {n}\n", (part * 31 + n) % 97)
    };
    format!("fn part_{part}() {{\n{}}}\n", (0..lines).map(line).collect::<String>())
}

/// An image of one pixel.
pub fn pixel() -> Image {
    let data =
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    serde_json::from_value(json!({"media_type": "image/png", "data": data, "width": 1, "height": 1}))
        .expect("an image")
}
