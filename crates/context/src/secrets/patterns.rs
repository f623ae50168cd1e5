//! The forms of secrets that are known by their look alone: a table of prefixes, and private keys.
//!
//! Every form has a fixed beginning that nothing else has. There is no rule for "random looking"
//! text: hashes, lock files, images and minified code are random looking, too.

/// A key that begins with certain letters.
struct KeyForm {
    kind: &'static str,
    prefix: &'static str,
    /// How many characters follow the prefix, at least and at most.
    length: (usize, usize),
    alphabet: Alphabet,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Alphabet {
    /// Letters, digits, `_` and `-`.
    Words,
    /// Letters and digits.
    Letters,
    /// Capital letters and digits.
    Capitals,
    /// Hexadecimal digits, small letters.
    Hex,
    /// Letters, digits, `_`, `-` and `.`.
    Dotted,
}

impl Alphabet {
    fn has(self, byte: u8) -> bool {
        match self {
            Alphabet::Words => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'),
            Alphabet::Letters => byte.is_ascii_alphanumeric(),
            Alphabet::Capitals => byte.is_ascii_uppercase() || byte.is_ascii_digit(),
            Alphabet::Hex => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
            Alphabet::Dotted => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'),
        }
    }
}

const fn form(
    kind: &'static str,
    prefix: &'static str,
    length: (usize, usize),
    alphabet: Alphabet,
) -> KeyForm {
    KeyForm { kind, prefix, length, alphabet }
}

/// Longer prefixes come before shorter ones that they begin with.
const KEY_FORMS: &[KeyForm] = &[
    form("Anthropic key", "sk-ant-", (32, 200), Alphabet::Words),
    form("OpenRouter key", "sk-or-v1-", (64, 64), Alphabet::Hex),
    form("OpenAI key", "sk-proj-", (40, 300), Alphabet::Words),
    form("OpenAI key", "sk-svcacct-", (40, 300), Alphabet::Words),
    form("OpenAI key", "sk-admin-", (40, 300), Alphabet::Words),
    form("API key", "sk-", (32, 64), Alphabet::Letters),
    form("Google API key", "AIza", (35, 35), Alphabet::Words),
    form("Groq key", "gsk_", (40, 80), Alphabet::Letters),
    form("xAI key", "xai-", (60, 120), Alphabet::Letters),
    form("Perplexity key", "pplx-", (40, 80), Alphabet::Letters),
    form("Hugging Face token", "hf_", (30, 60), Alphabet::Letters),
    form("Replicate token", "r8_", (30, 60), Alphabet::Letters),
    form("GitHub token", "github_pat_", (60, 120), Alphabet::Words),
    form("GitHub token", "ghp_", (36, 255), Alphabet::Letters),
    form("GitHub token", "gho_", (36, 255), Alphabet::Letters),
    form("GitHub token", "ghu_", (36, 255), Alphabet::Letters),
    form("GitHub token", "ghs_", (36, 255), Alphabet::Letters),
    form("GitHub token", "ghr_", (36, 255), Alphabet::Letters),
    form("GitLab token", "glpat-", (20, 60), Alphabet::Words),
    form("AWS access key", "AKIA", (16, 16), Alphabet::Capitals),
    form("AWS access key", "ASIA", (16, 16), Alphabet::Capitals),
    form("Slack token", "xoxb-", (40, 200), Alphabet::Words),
    form("Slack token", "xoxp-", (40, 200), Alphabet::Words),
    form("Slack token", "xoxa-", (40, 200), Alphabet::Words),
    form("Slack token", "xapp-", (40, 200), Alphabet::Words),
    form("Stripe key", "sk_live_", (24, 120), Alphabet::Letters),
    form("Stripe key", "rk_live_", (24, 120), Alphabet::Letters),
    form("npm token", "npm_", (36, 36), Alphabet::Letters),
    form("PyPI token", "pypi-AgE", (60, 250), Alphabet::Words),
    form("SendGrid key", "SG.", (60, 70), Alphabet::Dotted),
    form("DigitalOcean token", "dop_v1_", (64, 64), Alphabet::Hex),
    form("Doppler token", "dp.pt.", (40, 60), Alphabet::Letters),
    form("age secret key", "AGE-SECRET-KEY-1", (58, 58), Alphabet::Capitals),
];

/// The parts of a text that have the form of a secret.
pub fn find_by_form(text: &str) -> Vec<(&'static str, &str)> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] == b'-' && text[at..].starts_with(PEM_BEGIN) {
            if let Some(key) = private_key(&text[at..]) {
                found.push(("private key", key));
                at += key.len();
                continue;
            }
        } else if bytes[at].is_ascii_alphabetic()
            && let Some((kind, key)) = key_at(text, at)
        {
            found.push((kind, key));
            at += key.len();
            continue;
        }
        // A key begins where a word begins: also after the mark of a line in a diff, and after a line end
        // or a tab as strings have it.
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'+');
        if bytes[at] == b'\\' && matches!(bytes.get(at + 1), Some(b'n' | b'r' | b't')) {
            at += 2;
        } else if is_word(bytes[at]) && !(bytes[at] == b'+' && begins_line(text, at)) {
            while at < bytes.len() && is_word(bytes[at]) {
                at += 1;
            }
        } else {
            at += 1;
            while !text.is_char_boundary(at) {
                at += 1;
            }
        }
    }
    found
}

fn begins_line(text: &str, at: usize) -> bool {
    at == 0 || text.as_bytes()[at - 1] == b'\n'
}

fn key_at(text: &str, at: usize) -> Option<(&'static str, &str)> {
    let rest = &text[at..];
    // `.` and `-` before it: the middle of a path or of another word, but for the mark of a diff.
    let before = text[..at].bytes().next_back();
    let is_mark = before == Some(b'-') && begins_line(text, at - 1);
    if before.is_some_and(|byte| matches!(byte, b'-' | b'.')) && !is_mark {
        return None;
    }
    KEY_FORMS.iter().filter(|form| rest.starts_with(form.prefix)).find_map(|form| {
        let body = &rest[form.prefix.len()..];
        let length = body.bytes().take_while(|byte| form.alphabet.has(*byte)).count();
        let (least, most) = form.length;
        let after = body.as_bytes().get(length);
        let goes_on =
            after.is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'_'));
        let is_key = (least..=most).contains(&length) && !goes_on && looks_random(&body[..length]);
        is_key.then(|| (form.kind, &rest[..form.prefix.len() + length]))
    })
}

/// Whether the rest of a key may be one: documents and tests have `xxxx`, `your-key-here` and
/// `EXAMPLE` in its place.
fn looks_random(body: &str) -> bool {
    let mut distinct = [false; 128];
    body.bytes().filter(u8::is_ascii).for_each(|byte| distinct[usize::from(byte)] = true);
    let distinct = distinct.iter().filter(|is_there| **is_there).count();
    let lower = body.to_ascii_lowercase();
    let is_sample = [
        "example",
        "xxxx",
        "your",
        "placeholder",
        "redacted",
        "dummy",
        "fake",
        "secret",
        "12345678",
        "abcdefgh",
    ];
    body.bytes().any(|byte| byte.is_ascii_digit())
        && body.bytes().any(|byte| byte.is_ascii_alphabetic())
        && distinct >= 10
        && !is_sample.iter().any(|word| lower.contains(word))
}

const PEM_BEGIN: &str = "-----BEGIN ";

/// A private key in PEM, from its first line to its last, or to where its lines end.
fn private_key(text: &str) -> Option<&str> {
    const LONGEST: usize = 20_000;
    let label_end = text[PEM_BEGIN.len()..].find("-----")? + PEM_BEGIN.len();
    let label = &text[PEM_BEGIN.len()..label_end];
    if label.len() > 40
        || !(label == "PRIVATE KEY"
            || label.ends_with(" PRIVATE KEY")
            || label.ends_with("PRIVATE KEY BLOCK"))
    {
        return None;
    }
    let body_start = label_end + 5;
    let limit = text.floor_char_boundary(text.len().min(LONGEST));
    let end = match text[body_start..limit].find("-----END ") {
        Some(end) => {
            let line = &text[body_start + end + 9..];
            body_start + end + 9 + line.find("-----").map_or(0, |at| at + 5)
        }
        None => limit,
    };
    let base64 = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    // Code that only mentions the first line has no key behind it.
    (text[body_start..end].bytes().filter(|byte| base64(byte)).count() >= 60).then(|| &text[..end])
}
