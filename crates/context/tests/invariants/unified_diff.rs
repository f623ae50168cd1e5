//! Applies a unified diff, as a model has to when it reads an update.

/// Lines with their ends, which may be any of `\n`, `\r\n` and `\r`.
fn lines(text: &str) -> Vec<&str> {
    let (mut lines, mut start) = (Vec::new(), 0);
    let bytes = text.as_bytes();
    for at in 0..bytes.len() {
        let ends = bytes[at] == b'\n' || (bytes[at] == b'\r' && bytes.get(at + 1) != Some(&b'\n'));
        if ends {
            lines.push(&text[start..=at]);
            start = at + 1;
        }
    }
    if start < text.len() {
        lines.push(&text[start..]);
    }
    lines
}

/// The text after the change, if the diff fits the text.
pub fn apply(old: &str, diff: &str) -> Option<String> {
    const CUT: &str = "\\ No newline at end of file";
    let old = lines(old);
    let mut new = String::new();
    let mut at = 0;
    let diff = lines(diff);
    for (index, line) in diff.iter().enumerate() {
        // A line of the text that has no end is written with one, and the next line of the diff
        // takes it back.
        let cut = diff.get(index + 1).is_some_and(|next| next.starts_with(CUT));
        let body = |line: &str| -> String {
            let body = &line[1..];
            if cut { body.strip_suffix('\n').unwrap_or(body).to_owned() } else { body.to_owned() }
        };
        match line.as_bytes().first()? {
            b'@' => {
                let start: usize = line.split(['-', ',', ' ']).nth(2)?.parse().ok()?;
                let empty = line.split(' ').nth(1)?.ends_with(",0");
                let until = if empty { start } else { start.checked_sub(1)? };
                new.extend(old.get(at..until)?.iter().copied());
                at = until;
            }
            b' ' | b'-' => {
                if *old.get(at)? != body(line) {
                    return None;
                }
                if line.starts_with(' ') {
                    new.push_str(old[at]);
                }
                at += 1;
            }
            b'+' => new.push_str(&body(line)),
            b'\\' => {}
            _ => return None,
        }
    }
    new.extend(old.get(at..)?.iter().copied());
    Some(new)
}
