//! Outlines as bytes, for a cache on disk.
//!
//! The bytes mean something only to the same program: [`format_id`] changes with the queries, the languages and the
//! encoding, and a cache keeps it beside what it stores.

use std::sync::OnceLock;

use thiserror::Error;

use crate::capture::Kind;
use crate::language::{Languages, embedded};
use crate::manifest::Manifest;
use crate::outline::{Definition, Import, ImportForm, Outline, Reach, Skip, Waits};

/// Counts up with every change of the encoding or of what is read off a file by code.
const VERSION: u8 = 2;

/// Bytes that are no outline.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("a stored outline is damaged at byte {at}: drop it and read the file again")]
pub struct Damaged {
    /// Where reading stopped.
    pub at: usize,
}

/// What stored outlines depend on besides the file: 32 hexadecimal digits.
pub fn format_id() -> &'static str {
    static ID: OnceLock<String> = OnceLock::new();
    ID.get_or_init(|| {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&[VERSION]);
        for text in embedded() {
            hasher.update(text.as_bytes());
            hasher.update(&[0]);
        }
        hasher.finalize().to_hex()[..32].to_string()
    })
}

/// An outline as bytes.
pub fn encode(outline: &Outline) -> Vec<u8> {
    let Outline { language, skipped, definitions, imports, words, manifest } = outline;
    let mut to = Vec::new();
    // By name: the numbers belong to one build of the table.
    let language = language.and_then(|id| Languages::builtin().get(id)).map_or("", |language| &language.name);
    text(&mut to, language);
    to.push(
        skipped
            .and_then(|skip| Skip::ALL.iter().position(|known| *known == skip))
            .map_or(0, |at| at as u8 + 1),
    );
    encode_manifest(&mut to, manifest.as_ref());
    list(&mut to, words, |to, word| text(to, word));
    list(&mut to, imports, |to, import| {
        text(to, &import.path);
        to.push(import.form as u8);
        list(to, &import.names, |to, name| text(to, name));
    });
    list(&mut to, definitions, |to, definition| {
        let Definition { kind, name, parent, line, signature, bases, waits, reach, calls } = definition;
        to.extend([kind.code(), *waits as u8, *reach as u8]);
        text(to, name);
        number(to, parent.map_or(0, |parent| u64::from(parent) + 1));
        number(to, u64::from(*line));
        text(to, signature);
        list(to, bases, |to, base| text(to, base));
        list(to, calls, |to, call| number(to, u64::from(*call)));
    });
    to
}

fn encode_manifest(to: &mut Vec<u8>, manifest: Option<&Manifest>) {
    match manifest {
        None => to.push(0),
        Some(Manifest::Crate(name)) => {
            to.push(1);
            text(to, name);
        }
        Some(Manifest::GoModule(name)) => {
            to.push(2);
            text(to, name);
        }
        Some(Manifest::Package(name)) => {
            to.push(3);
            text(to, name);
        }
        Some(Manifest::Paths(pairs)) => {
            to.push(4);
            list(to, pairs, |to, (short, long)| {
                text(to, short);
                text(to, long);
            });
        }
    }
}

/// Seven bits per byte, low bits first; the high bit says that more follow.
fn number(to: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        to.push((value & 0x7F) as u8 | 0x80);
        value >>= 7;
    }
    to.push(value as u8);
}

fn text(to: &mut Vec<u8>, value: &str) {
    number(to, value.len() as u64);
    to.extend_from_slice(value.as_bytes());
}

fn list<T>(to: &mut Vec<u8>, items: &[T], mut each: impl FnMut(&mut Vec<u8>, &T)) {
    number(to, items.len() as u64);
    for item in items {
        each(to, item);
    }
}

/// The outline that was encoded.
///
/// # Errors
/// Bytes that [`encode`] did not make. No bytes make it panic or ask for more memory than they are worth.
pub fn decode(bytes: &[u8]) -> Result<Outline, Damaged> {
    let mut from = Cursor { bytes, at: 0 };
    let outline = from.outline().ok_or(Damaged { at: from.at })?;
    if from.at == bytes.len() { Ok(outline) } else { Err(Damaged { at: from.at }) }
}

struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Cursor<'_> {
    fn outline(&mut self) -> Option<Outline> {
        let name = self.text()?;
        let language = match &*name {
            "" => None,
            name => Some(Languages::builtin().named(name)?),
        };
        let skipped = match self.byte()? {
            0 => None,
            code => Some(*Skip::ALL.get(usize::from(code) - 1)?),
        };
        let manifest = match self.byte()? {
            0 => None,
            1 => Some(Manifest::Crate(self.text()?.into())),
            2 => Some(Manifest::GoModule(self.text()?.into())),
            3 => Some(Manifest::Package(self.text()?.into())),
            4 => Some(Manifest::Paths(self.list(|from| Some((from.text()?.into(), from.text()?.into())))?)),
            _ => return None,
        };
        let words = self.list(Cursor::text)?;
        let imports = self.list(Cursor::import)?;
        let mut definitions = self.list(Cursor::definition)?;
        // Places that lead nowhere would be a panic later.
        let (words_end, definitions_end) = (words.len() as u64, definitions.len() as u64);
        let sound = |definition: &mut Definition| {
            definition.parent.is_none_or(|parent| u64::from(parent) < definitions_end)
                && definition.calls.iter().all(|call| u64::from(*call) < words_end)
        };
        definitions.iter_mut().all(sound).then_some(())?;
        Some(Outline { language, skipped, definitions, imports, words, manifest })
    }

    fn import(&mut self) -> Option<Import> {
        let path = self.text()?;
        let form = match self.byte()? {
            0 => ImportForm::Use,
            1 => ImportForm::Public,
            2 => ImportForm::Submodule,
            3 => ImportForm::PublicSubmodule,
            _ => return None,
        };
        Some(Import { path, form, names: self.list(Cursor::text)?.into() })
    }

    fn definition(&mut self) -> Option<Definition> {
        let kind = Kind::from_code(self.byte()?)?;
        let waits = match self.byte()? {
            0 => Waits::No,
            1 => Waits::Async,
            _ => return None,
        };
        let reach = match self.byte()? {
            0 => Reach::Shared,
            1 => Reach::Local,
            2 => Reach::Test,
            3 => Reach::Implied,
            _ => return None,
        };
        Some(Definition {
            kind,
            waits,
            reach,
            name: self.text()?,
            parent: self.small()?.checked_sub(1),
            line: self.small()?,
            signature: self.text()?,
            bases: self.list(Cursor::text)?.into(),
            calls: self.list(Cursor::small)?.into(),
        })
    }

    fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    fn number(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    fn small(&mut self) -> Option<u32> {
        u32::try_from(self.number()?).ok()
    }

    fn text(&mut self) -> Option<Box<str>> {
        let length = usize::try_from(self.number()?).ok()?;
        let end = self.at.checked_add(length)?;
        let text = std::str::from_utf8(self.bytes.get(self.at..end)?).ok()?;
        self.at = end;
        Some(text.into())
    }

    fn list<T>(&mut self, mut each: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let length = usize::try_from(self.number()?).ok()?;
        // Every item takes a byte at least, so a length that is a lie asks for no memory.
        let mut items = Vec::with_capacity(length.min(self.bytes.len() - self.at));
        for _ in 0..length {
            items.push(each(self)?);
        }
        Some(items)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SAMPLES: [(&str, &str); 4] = [
        (
            "a.py",
            "from .b import c\nimport os\nclass A(B):\n    x = 1\n    async def f(self, a, b=1) -> int:\n        return go(a)\n",
        ),
        (
            "src/lib.rs",
            "pub mod a;\npub use a::{B, C};\npub struct D { e: u8 }\nimpl D { fn f(&self) { g() } }\n#[cfg(test)] mod tests { fn t() {} }\n",
        ),
        ("Cargo.toml", "[package]\nname = \"a-b\"\n"),
        ("x.min.js", ""),
    ];

    #[test]
    fn what_is_encoded_is_decoded() {
        for (path, content) in SAMPLES {
            let outline = Outline::of(path, content.as_bytes());
            assert_eq!(decode(&encode(&outline)), Ok(outline), "{path}");
        }
    }

    #[test]
    fn the_format_is_a_fixed_text() {
        assert_eq!(format_id().len(), 32);
    }

    proptest! {
        #[test]
        fn damaged_bytes_are_refused_or_read_and_never_more(sample in 0..4usize, at in 0..400usize, byte: u8, cut in 0..400usize) {
            let mut bytes = encode(&Outline::of(SAMPLES[sample].0, SAMPLES[sample].1.as_bytes()));
            if let Some(place) = bytes.get_mut(at) {
                *place = byte;
            }
            bytes.truncate(bytes.len().saturating_sub(cut % 7));
            let _ = decode(&bytes);
        }
    }
}
