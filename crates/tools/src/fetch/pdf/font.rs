//! [`Font`]: which characters the codes of a font stand for, and how wide they are.

use std::collections::BTreeMap;

use super::file::PdfFile;
use super::object::{Dictionary, Object, Parser};

/// The most characters that a font's own table names.
const MAX_MAPPED: usize = 70_000;

/// Windows-1252 from 0x80 on, where it is not Latin-1.
const WINDOWS: &str = "€\u{81}‚ƒ„…†‡ˆ‰Š‹Œ\u{8d}Ž\u{8f}\u{90}‘’“”•–—˜™š›œ\u{9d}žŸ";

/// The characters of the Macintosh from 0x80 on.
const MACINTOSH: &str = "ÄÅÇÉÑÖÜáàâäãåçéèêëíìîïñóòôöõúùûü†°¢£§•¶ß®©™´¨≠ÆØ∞±≤≥¥µ∂∑∏π∫ªºΩæø¿¡¬√ƒ≈∆«»…\u{a0}ÀÃÕŒœ–—“”‘’÷◊ÿŸ⁄€‹›ﬁﬂ‡·‚„‰ÂÊÁËÈÍÎÏÌÓÔ\u{fffd}ÒÚÛÙıˆ˜¯˘˙˚¸˝˛ˇ";

/// Names of characters that are no letters. Letters have their own name, and `uni00E4` its number.
const NAMES: &str = "space  exclam ! quotedbl \" numbersign # dollar $ percent % ampersand & quotesingle ' quoteright ’ \
    quoteleft ‘ parenleft ( parenright ) asterisk * plus + comma , hyphen - minus − period . slash / zero 0 one 1 two 2 \
    three 3 four 4 five 5 six 6 seven 7 eight 8 nine 9 colon : semicolon ; less < equal = greater > question ? at @ \
    bracketleft [ backslash \\ bracketright ] asciicircum ^ underscore _ grave ` braceleft { bar | braceright } \
    asciitilde ~ bullet • endash – emdash — quotedblleft “ quotedblright ” ellipsis … fi fi fl fl ff ff ffi ffi ffl ffl \
    Adieresis Ä Odieresis Ö Udieresis Ü adieresis ä odieresis ö udieresis ü germandbls ß eacute é egrave è agrave à \
    ccedilla ç ecircumflex ê acircumflex â ocircumflex ô icircumflex î ucircumflex û ntilde ñ aring å oslash ø ae æ \
    degree ° section § copyright © registered ® trademark ™ multiply × divide ÷ plusminus ± mu µ dagger † \
    daggerdbl ‡ Euro € sterling £ yen ¥ cent ¢ guillemotleft « guillemotright » dotlessi ı";

/// What the bytes of a string stand for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Encoding {
    /// Only what the font's own table says.
    #[default]
    Own,
    Windows,
    Macintosh,
}

/// How the codes of a font are read.
#[derive(Debug, Default)]
pub struct Font {
    /// Bytes of a code.
    code_bytes: usize,
    characters: BTreeMap<u32, String>,
    /// What codes without an entry are.
    encoding: Encoding,
    /// In thousandths of the font's size.
    widths: BTreeMap<u32, f64>,
    default_width: f64,
}

impl Font {
    pub fn read(file: &PdfFile<'_>, entries: &Dictionary) -> Self {
        let is_composite = entries.get("Subtype").and_then(Object::name) == Some("Type0");
        let mut font = Font {
            code_bytes: if is_composite { 2 } else { 1 },
            encoding: if is_composite { Encoding::Own } else { simple_encoding(file, entries) },
            default_width: if is_composite { 1000.0 } else { 500.0 },
            ..Font::default()
        };
        if is_composite {
            let descendants = file.array(entries.get("DescendantFonts"));
            if let Some(descendant) = file.dictionary(descendants.first()) {
                font.read_composite_widths(file, descendant);
            }
        } else {
            font.read_differences(file, entries);
            let first = file.number(entries.get("FirstChar")).unwrap_or(0);
            for (at, width) in file.array(entries.get("Widths")).iter().enumerate().take(256) {
                font.widths.insert((first + at) as u32, file.resolve(width).number().unwrap_or(500.0));
            }
        }
        if let Some((_, bytes)) = entries.get("ToUnicode").and_then(|table| file.stream(table)) {
            font.read_character_map(&bytes);
        }
        font
    }

    /// `/Differences [32 /space /A 200 /fi]`.
    fn read_differences(&mut self, file: &PdfFile<'_>, entries: &Dictionary) {
        let Some(encoding) = file.dictionary(entries.get("Encoding")) else { return };
        let mut code = 0u32;
        for item in file.array(encoding.get("Differences")).iter().take(MAX_MAPPED) {
            match file.resolve(item) {
                Object::Number(number) => code = *number as u32,
                Object::Name(name) => {
                    self.characters.extend(character_of_name(name).map(|character| (code, character)));
                    code = code.saturating_add(1);
                }
                _ => {}
            }
        }
    }

    /// `/W [1 [500 600] 10 20 700]`.
    fn read_composite_widths(&mut self, file: &PdfFile<'_>, entries: &Dictionary) {
        self.default_width =
            entries.get("DW").and_then(|width| file.resolve(width).number()).unwrap_or(1000.0);
        let mut items = file.array(entries.get("W")).iter().map(|item| file.resolve(item));
        while let (Some(Object::Number(first)), Some(next)) = (items.next(), items.next()) {
            let first = *first as u32;
            match next {
                Object::Array(widths) => {
                    let widths = widths.iter().take(MAX_MAPPED).zip(first..);
                    self.widths.extend(
                        widths.map(|(width, code)| (code, file.resolve(width).number().unwrap_or(0.0))),
                    );
                }
                Object::Number(last) => {
                    let Some(Object::Number(width)) = items.next() else { return };
                    let last = (*last as u32).min(first.saturating_add(MAX_MAPPED as u32));
                    self.widths.extend((first..=last).map(|code| (code, *width)));
                }
                _ => return,
            }
            if self.widths.len() > MAX_MAPPED {
                return;
            }
        }
    }

    fn read_character_map(&mut self, bytes: &[u8]) {
        let mut parser = Parser::new(bytes, 0);
        let mut operands: Vec<Object> = Vec::new();
        while let Some(object) = parser.next_object() {
            let Object::Operator(word) = object else {
                operands.push(object);
                if operands.len() > MAX_MAPPED * 3 {
                    return;
                }
                continue;
            };
            match &*word {
                "endcodespacerange" => {
                    if let Some(Object::Text(low)) = operands.first() {
                        self.code_bytes = low.len().clamp(1, 4);
                    }
                }
                "endbfchar" => {
                    for pair in operands.chunks_exact(2) {
                        if let [Object::Text(code), Object::Text(text)] = pair {
                            self.characters.insert(code_of(code), utf16(text));
                        }
                    }
                }
                "endbfrange" => operands.chunks_exact(3).for_each(|range| self.map_range(range)),
                _ => {}
            }
            operands.clear();
            if self.characters.len() > MAX_MAPPED {
                return;
            }
        }
    }

    fn map_range(&mut self, range: &[Object]) {
        let [Object::Text(low), Object::Text(high), target] = range else { return };
        let (low, high) = (code_of(low), code_of(high));
        let codes = low..=high.min(low.saturating_add(0xFFFF));
        match target {
            Object::Text(text) => {
                // The last character counts up.
                let text = utf16(text);
                let Some(last) = text.chars().next_back() else { return };
                let before = &text[..text.len() - last.len_utf8()];
                for (code, character) in codes.zip(u32::from(last)..) {
                    if self.characters.len() > MAX_MAPPED {
                        return;
                    }
                    let character = char::from_u32(character).unwrap_or(char::REPLACEMENT_CHARACTER);
                    self.characters.insert(code, format!("{before}{character}"));
                }
            }
            Object::Array(texts) => {
                for (code, text) in codes.zip(texts) {
                    if let Object::Text(text) = text {
                        self.characters.insert(code, utf16(text));
                    }
                }
            }
            _ => {}
        }
    }

    /// The characters of a string, each with its width in thousandths of the font's size. The flag says
    /// whether it is the code of a space, which word spacing widens.
    pub fn decode(&self, bytes: &[u8]) -> Vec<(String, f64, bool)> {
        let codes = bytes.chunks(self.code_bytes.max(1));
        let decode = |code: &[u8]| {
            let number = code_of(code);
            let default = || match (self.encoding, u8::try_from(number)) {
                (Encoding::Windows, Ok(byte)) => windows_character(byte).to_string(),
                (Encoding::Macintosh, Ok(byte)) => macintosh_character(byte).to_string(),
                _ => String::new(),
            };
            let text = self.characters.get(&number).cloned().unwrap_or_else(default);
            let width = self.widths.get(&number).copied().unwrap_or(self.default_width);
            (text, width, code == b" ")
        };
        codes.map(decode).collect()
    }
}

fn code_of(bytes: &[u8]) -> u32 {
    bytes.iter().take(4).fold(0, |code, byte| (code << 8) | u32::from(*byte))
}

fn utf16(bytes: &[u8]) -> String {
    let units: Vec<u16> = bytes
        .chunks(2)
        .map(|pair| pair.iter().fold(0, |unit, byte| (unit << 8) | u16::from(*byte)))
        .collect();
    String::from_utf16_lossy(&units)
}

fn simple_encoding(file: &PdfFile<'_>, entries: &Dictionary) -> Encoding {
    let name = match entries.get("Encoding").map(|encoding| file.resolve(encoding)) {
        Some(Object::Name(name)) => Some(name.as_str()),
        Some(Object::Dictionary(encoding)) => encoding.get("BaseEncoding").and_then(Object::name),
        _ => None,
    };
    if name == Some("MacRomanEncoding") { Encoding::Macintosh } else { Encoding::Windows }
}

fn macintosh_character(byte: u8) -> char {
    match byte {
        0x80.. => MACINTOSH.chars().nth(usize::from(byte - 0x80)).unwrap_or(' '),
        byte => char::from(byte),
    }
}

fn windows_character(byte: u8) -> char {
    match byte {
        0x80..=0x9F => WINDOWS.chars().nth(usize::from(byte - 0x80)).unwrap_or(' '),
        byte => char::from(byte),
    }
}

fn character_of_name(name: &str) -> Option<String> {
    let name = name.split('.').next().unwrap_or(name);
    if name.chars().count() == 1 {
        return Some(name.to_owned());
    }
    let hexadecimal = name.strip_prefix("uni").or_else(|| name.strip_prefix('u'));
    if let Some(character) =
        hexadecimal.and_then(|digits| u32::from_str_radix(digits, 16).ok()).and_then(char::from_u32)
    {
        return Some(character.to_string());
    }
    if name == "space" {
        return Some(" ".to_owned());
    }
    let mut names = NAMES.split_whitespace().skip(1);
    while let (Some(known), Some(character)) = (names.next(), names.next()) {
        if known == name {
            return Some(character.to_owned());
        }
    }
    None
}

/// A text of the file's own description: UTF-16 with a mark, or one byte per character.
pub fn description_text(bytes: &[u8]) -> String {
    match bytes.strip_prefix(b"\xFE\xFF") {
        Some(rest) => utf16(rest),
        None => match bytes.strip_prefix(b"\xEF\xBB\xBF") {
            Some(rest) => String::from_utf8_lossy(rest).into_owned(),
            None => bytes.iter().map(|byte| windows_character(*byte)).collect(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_character_has_its_name() {
        let words: Vec<&str> = NAMES.split_whitespace().skip(1).collect();
        assert_eq!(words.len() % 2, 0);
        for (name, character) in
            [("space", " "), ("A", "A"), ("fi", "fi"), ("adieresis", "ä"), ("uni20AC", "€"), ("a.sc", "a")]
        {
            assert_eq!(character_of_name(name).as_deref(), Some(character), "{name}");
        }
        assert_eq!(character_of_name("unknown"), None);
        assert_eq!((windows_character(0x96), macintosh_character(0xDE)), ('–', 'ﬁ'));
        assert_eq!((WINDOWS.chars().count(), MACINTOSH.chars().count()), (0x20, 0x80));
    }
}
