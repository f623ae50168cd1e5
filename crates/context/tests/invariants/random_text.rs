//! Random texts, among them every sort that has ever broken something.

use crate::rng::TestRng;

const WORDS: [&str; 16] = [
    "let",
    "mut",
    "value",
    "=",
    "parse(input)?;",
    "fn",
    "main()",
    "{",
    "}",
    "// why",
    "return",
    "a.b.c",
    "0x1f",
    "\"quoted\"",
    "back\\slash",
    "the",
];

/// Lines that can cause trouble: fences, placeholders, markup of ours, other scripts, invisible
/// characters.
const ODD_LINES: [&str; 12] = [
    "```rust\nlet a = 1;\n```",
    "````",
    "{key} {content} {path} {} {{now}}",
    "=== file:src/a.rs ===",
    "[tree was closed; the copy shown before is no longer kept up to date.]",
    "Grüße, 世界, שלום, 👩‍👩‍👧, e\u{301}",
    "\u{feff}\u{2028}\u{2029}\u{200b}",
    "nul \0, escape \u{1b}[31m, delete \u{7f}, bell \u{7}",
    "windows line\r\nand another\r\n",
    "an old Mac's\rlines",
    "@@ -1,3 +1,3 @@\n-old\n+new\n\\ No newline at end of file",
    "   trailing spaces   \t",
];

/// One line of ordinary words.
pub fn line(rng: &mut TestRng) -> String {
    let count = rng.between(1, 8);
    (0..count).map(|_| *rng.pick(&WORDS)).collect::<Vec<_>>().join(" ")
}

/// Some lines, a few of them odd.
pub fn text(rng: &mut TestRng, lines: usize) -> String {
    let mut text = String::new();
    for _ in 0..lines {
        if rng.one_in(12) {
            text.push_str(rng.pick::<&str>(&ODD_LINES));
        } else {
            text.push_str(&line(rng));
        }
        text.push('\n');
    }
    if rng.one_in(3) {
        text.truncate(text.trim_end().len());
    }
    text
}

/// What something that is kept may hold: mostly a few lines, now and then nothing, blanks, or a
/// lot.
pub fn file_text(rng: &mut TestRng) -> String {
    match rng.below(40) {
        0 => String::new(),
        1 => " \n\t\n".to_owned(),
        2 => text(rng, 120),
        3..=9 => rng.pick::<&str>(&ODD_LINES).to_string(),
        _ => {
            let lines = rng.between(1, 25);
            text(rng, lines)
        }
    }
}

/// The same text with a line changed, added or removed; or something else altogether.
pub fn changed_text(rng: &mut TestRng, text: &str) -> String {
    let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
    let at = rng.below(lines.len());
    match rng.below(6) {
        0 => return file_text(rng),
        1 => lines.insert(at, format!("{}\n", line(rng))),
        2 if lines.len() > 1 => drop(lines.remove(at)),
        3 => lines.push("a last line without its newline".into()),
        _ if lines.is_empty() => lines.push(line(rng)),
        _ => lines[at] = format!("{} // changed\n", lines[at].trim_end()),
    }
    lines.concat()
}

/// Text that a user types: never blank.
pub fn typed_text(rng: &mut TestRng) -> String {
    let lines = rng.between(1, 3);
    format!("{} {}", line(rng), text(rng, lines))
}

/// Something that looks like base64; nothing here decodes it.
pub fn base64(rng: &mut TestRng) -> String {
    format!("iVBORw0KGgo{:016x}AAAA=", rng.number())
}
