//! Names of keys in a text that is typed.

/// The bytes that typing a text sends: names of keys in angle brackets (`<Enter>`, `<Tab>`, `<Esc>`,
/// `<Up>`, `<C-c>`, …) are the keys, a line end is Enter, all else is itself.
pub fn parse_keys(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        if next == '<'
            && let Some((name, after)) = rest[1..].split_once('>')
            && let Some(key) = key_bytes(name)
        {
            bytes.extend(key);
            rest = after;
            continue;
        }
        match next {
            '\n' => bytes.push(b'\r'),
            next => bytes.extend(next.encode_utf8(&mut [0; 4]).as_bytes()),
        }
        rest = &rest[next.len_utf8()..];
    }
    bytes
}

fn key_bytes(name: &str) -> Option<Vec<u8>> {
    let lower = name.to_ascii_lowercase();
    if let Some(letter) = lower.strip_prefix("c-") {
        let [letter] = letter.as_bytes() else { return None };
        return letter.is_ascii_lowercase().then(|| vec![letter & 0x1f]);
    }
    let bytes: &[u8] = match &*lower {
        "enter" | "return" => b"\r",
        "tab" => b"\t",
        "esc" | "escape" => b"\x1b",
        "space" => b" ",
        "backspace" => b"\x7f",
        "delete" => b"\x1b[3~",
        "up" => b"\x1b[A",
        "down" => b"\x1b[B",
        "right" => b"\x1b[C",
        "left" => b"\x1b[D",
        "home" => b"\x1b[H",
        "end" => b"\x1b[F",
        "pageup" => b"\x1b[5~",
        "pagedown" => b"\x1b[6~",
        _ => return None,
    };
    Some(bytes.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_keys_and_all_else_is_itself() {
        assert_eq!(parse_keys("ls<Enter>"), b"ls\r");
        assert_eq!(parse_keys("a\nb"), b"a\rb");
        assert_eq!(parse_keys("<C-c><c-D><up>"), b"\x03\x04\x1b[A");
        assert_eq!(parse_keys("if a < b and c > d: <b>é<"), "if a < b and c > d: <b>é<".as_bytes());
        assert_eq!(parse_keys("<C-1><C-><>"), b"<C-1><C-><>");
    }
}
