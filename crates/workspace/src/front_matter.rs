//! [`FrontMatter`]: the lines between two `---` at the top of a file that another agent reads.
//!
//! Those agents read them leniently, and what people write is often no YAML: `globs: *.ts` begins an
//! alias there, `argument-hint: [file]` a list. So every value is taken as it is written.

/// What stands at the top of a file, and the text below it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FrontMatter<'a> {
    fields: Vec<(&'a str, Vec<&'a str>)>,
    /// The text below, without leading blank lines and trailing white space.
    pub body: &'a str,
}

impl<'a> FrontMatter<'a> {
    /// Reads the top of a text. Without two lines of `---`, all of it is the body.
    pub fn parse(text: &'a str) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let whole = FrontMatter { fields: Vec::new(), body: tidy(text) };
        let mut lines = text.split_inclusive('\n');
        let Some(first) = lines.next().filter(|line| line.trim_end() == "---") else { return whole };
        let mut at = first.len();
        let mut fields: Vec<(&str, Vec<&str>)> = Vec::new();
        for line in lines {
            at += line.len();
            if line.trim_end() == "---" {
                return FrontMatter { fields, body: tidy(&text[at..]) };
            }
            let trimmed = line.trim();
            match (trimmed.strip_prefix('-'), line.split_once(':')) {
                _ if trimmed.is_empty() || trimmed.starts_with('#') => {}
                (Some(entry), _) => {
                    if let Some((_, values)) = fields.last_mut() {
                        values.push(unquoted(entry.trim()));
                    }
                }
                (None, Some((key, value))) if !line.starts_with([' ', '\t']) => {
                    let value = unquoted(value.trim());
                    fields.push((
                        key.trim(),
                        Some(value).filter(|value| !value.is_empty()).into_iter().collect(),
                    ));
                }
                _ => {}
            }
        }
        whole
    }

    /// The value of a field; the first of a list. None if it is missing or empty.
    pub fn get(&self, key: &str) -> Option<&'a str> {
        self.values(key).first().copied()
    }

    /// Every value of a field: the entries of a list, or what commas separate.
    pub fn list(&self, key: &str) -> Vec<&'a str> {
        let values = self.values(key).iter();
        let entries = values.flat_map(|value| {
            let inner = value.strip_prefix('[').and_then(|value| value.strip_suffix(']')).unwrap_or(value);
            split_list(inner)
        });
        entries.map(|entry| unquoted(entry.trim())).filter(|entry| !entry.is_empty()).collect()
    }

    fn values(&self, key: &str) -> &[&'a str] {
        self.fields.iter().find(|(name, _)| *name == key).map_or(&[], |(_, values)| values)
    }
}

/// Splits at commas, except within braces: `*.{ts,tsx}` is one glob.
fn split_list(text: &str) -> Vec<&str> {
    let (mut depth, mut start, mut parts) = (0_usize, 0, Vec::new());
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

fn unquoted(value: &str) -> &str {
    let within = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote);
    within('"').or_else(|| within('\'')).unwrap_or(value)
}

fn tidy(text: &str) -> &str {
    let mut rest = text.trim_end();
    while let Some((first, after)) = rest.split_once('\n') {
        if !first.trim().is_empty() {
            break;
        }
        rest = after;
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_taken_as_they_are_written() {
        let text = "---\ndescription: Use when: asked\nglobs: *.ts, src/**/*.{js,jsx}\nargument-hint: [file] [line]\nempty:\nlist:\n  - \"a, b\"\n  - c\n# no\nalwaysApply: false\n---\n\n Body\n";
        let matter = FrontMatter::parse(text);
        assert_eq!(matter.get("description"), Some("Use when: asked"));
        assert_eq!(matter.list("globs"), ["*.ts", "src/**/*.{js,jsx}"]);
        assert_eq!(matter.get("argument-hint"), Some("[file] [line]"));
        assert_eq!(matter.get("empty"), None);
        assert_eq!(matter.list("list"), ["a", "b", "c"]);
        assert_eq!(matter.get("alwaysApply"), Some("false"));
        assert_eq!(matter.body, " Body");
    }

    #[test]
    fn a_text_without_front_matter_is_all_body() {
        for text in ["a: 1", "---\na: 1\n", "", "x\n---\na: 1\n---\n"] {
            let matter = FrontMatter::parse(text);
            assert_eq!((matter.body, matter.get("a")), (text.trim_end(), None), "{text}");
        }
    }
}
