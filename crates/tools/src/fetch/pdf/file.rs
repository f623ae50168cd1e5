//! [`PdfFile`]: the objects of a file by their numbers.
//!
//! The file's own table of objects is not used: it stands at the end, which may be missing, and a hostile
//! one leads anywhere. The objects are found by what they begin with.

use std::cell::Cell;
use std::collections::BTreeMap;

use memchr::memmem;
use miniz_oxide::inflate::decompress_to_vec_zlib_with_limit;

use super::PdfError;
use super::object::{Dictionary, Object, Parser, is_space};

/// The most objects of a file.
const MAX_OBJECTS: usize = 300_000;
/// The most bytes that one stream may be unpacked to, and all of them together.
const MAX_STREAM_BYTES: usize = 16 << 20;
const MAX_UNPACKED_BYTES: usize = 64 << 20;
/// How many references lead to each other.
const MAX_HOPS: usize = 20;

/// An object, and the bytes of its stream in the file.
struct FileObject {
    object: Object,
    stream: Option<(usize, usize)>,
}

pub struct PdfFile<'a> {
    bytes: &'a [u8],
    objects: BTreeMap<u32, FileObject>,
    /// What trailers say: where the catalogue and the title are.
    pub trailer: Dictionary,
    room: Cell<usize>,
}

impl<'a> PdfFile<'a> {
    pub fn read(bytes: &'a [u8]) -> Result<Self, PdfError> {
        if memmem::find(&bytes[..bytes.len().min(1024)], b"%PDF-").is_none() {
            return Err(PdfError::NotPdf);
        }
        let room = Cell::new(MAX_UNPACKED_BYTES);
        let mut file = PdfFile { bytes, objects: BTreeMap::new(), trailer: Dictionary::new(), room };
        file.find_objects();
        file.find_trailers();
        if file.trailer.contains_key("Encrypt") {
            return Err(PdfError::Encrypted);
        }
        file.unpack_object_streams();
        Ok(file)
    }

    fn find_objects(&mut self) {
        let mut at = 0;
        let finder = memmem::Finder::new(b"obj");
        while let Some(found) = finder.find(&self.bytes[at..]).map(|found| at + found) {
            at = found + 3;
            let Some(number) = number_before(&self.bytes[..found]) else { continue };
            let mut parser = Parser::new(self.bytes, at);
            let Some(object) = parser.next_object() else { return };
            let stream = match &object {
                Object::Dictionary(entries) => stream_range(self.bytes, &mut parser, entries),
                _ => None,
            };
            // What looks like an object within a stream is none.
            at = stream.map_or(parser.at.max(at), |(_, end)| end).min(self.bytes.len());
            if let (Object::Dictionary(entries), Some(_)) = (&object, stream)
                && entries.get("Type").and_then(Object::name) == Some("XRef")
            {
                self.trailer.extend(entries.clone());
            }
            if self.objects.len() >= MAX_OBJECTS {
                return;
            }
            self.objects.insert(number, FileObject { object, stream });
        }
    }

    fn find_trailers(&mut self) {
        for found in memmem::find_iter(self.bytes, b"trailer") {
            if let Some(Object::Dictionary(entries)) = Parser::new(self.bytes, found + 7).next_object() {
                self.trailer.extend(entries);
            }
        }
    }

    /// Objects that are packed into a stream of another one.
    fn unpack_object_streams(&mut self) {
        let is_packed = |object: &FileObject| match &object.object {
            Object::Dictionary(entries) => entries.get("Type").and_then(Object::name) == Some("ObjStm"),
            _ => false,
        };
        let packed = self.objects.iter().filter(|(_, object)| is_packed(object));
        let packed: Vec<u32> = packed.map(|(number, _)| *number).collect();
        for number in packed {
            let Some((entries, bytes)) = self.stream(&Object::Reference(number)) else { continue };
            let first = self.number(entries.get("First")).unwrap_or(0);
            let count = self.number(entries.get("N")).unwrap_or(0).min(bytes.len());
            let mut header = Parser::new(&bytes, 0);
            // Objects may lie in each other. Together they are not longer than the stream, if it is honest.
            let mut room = bytes.len().saturating_mul(2);
            for _ in 0..count {
                let (Some(Object::Number(number)), Some(Object::Number(offset))) =
                    (header.next_object(), header.next_object())
                else {
                    break;
                };
                let start = first.saturating_add(offset as usize);
                let mut parser = Parser::new(&bytes, start);
                let Some(object) = parser.next_object() else { continue };
                let Some(left) = room.checked_sub(parser.at.saturating_sub(start)) else { break };
                room = left;
                if self.objects.len() < MAX_OBJECTS {
                    self.objects.insert(number as u32, FileObject { object, stream: None });
                }
            }
        }
    }

    /// What an object is, behind references.
    pub fn resolve<'b>(&'b self, object: &'b Object) -> &'b Object {
        let mut object = object;
        for _ in 0..MAX_HOPS {
            let Object::Reference(number) = object else { return object };
            match self.objects.get(number) {
                Some(found) => object = &found.object,
                None => return &Object::Null,
            }
        }
        &Object::Null
    }

    pub fn dictionary<'b>(&'b self, object: Option<&'b Object>) -> Option<&'b Dictionary> {
        match self.resolve(object?) {
            Object::Dictionary(entries) => Some(entries),
            _ => None,
        }
    }

    pub fn array<'b>(&'b self, object: Option<&'b Object>) -> &'b [Object] {
        match object.map(|object| self.resolve(object)) {
            Some(Object::Array(items)) => items,
            _ => &[],
        }
    }

    pub fn number(&self, object: Option<&Object>) -> Option<usize> {
        self.resolve(object?).number().map(|number| number as usize)
    }

    /// The objects that are dictionaries of this type, by their numbers.
    pub fn of_type<'b>(&'b self, kind: &'b str) -> impl Iterator<Item = (u32, &'b Dictionary)> {
        self.objects.iter().filter_map(move |(number, object)| match &object.object {
            Object::Dictionary(entries) if entries.get("Type").and_then(Object::name) == Some(kind) => {
                Some((*number, entries))
            }
            _ => None,
        })
    }

    /// A stream, unpacked; none if it is packed in another way or too large.
    pub fn stream(&self, object: &Object) -> Option<(&Dictionary, Vec<u8>)> {
        let mut object = object;
        for _ in 0..MAX_HOPS {
            let Object::Reference(number) = object else { return None };
            let found = self.objects.get(number)?;
            match (&found.object, found.stream) {
                (Object::Dictionary(entries), Some((start, end))) => {
                    let bytes = self.unpack(entries, &self.bytes[start..end])?;
                    self.room.set(self.room.get().checked_sub(bytes.len())?);
                    return Some((entries, bytes));
                }
                (next @ Object::Reference(_), _) => object = next,
                _ => return None,
            }
        }
        None
    }

    fn unpack(&self, entries: &Dictionary, bytes: &[u8]) -> Option<Vec<u8>> {
        let filter = entries.get("Filter").map_or(&Object::Null, |filter| self.resolve(filter));
        let filters: Vec<&str> = match filter {
            Object::Name(name) => vec![name],
            Object::Array(names) => names.iter().filter_map(|name| self.resolve(name).name()).collect(),
            _ => Vec::new(),
        };
        let limit = MAX_STREAM_BYTES.min(self.room.get());
        let mut bytes = bytes.to_vec();
        for filter in filters {
            bytes = match filter {
                "FlateDecode" | "Fl" => match decompress_to_vec_zlib_with_limit(&bytes, limit) {
                    Ok(unpacked) => unpacked,
                    // Broken off: what came so far is of use.
                    Err(error) if !error.output.is_empty() && error.output.len() < limit => error.output,
                    Err(_) => return None,
                },
                "ASCIIHexDecode" | "AHx" => {
                    match Parser::new(&[b"<", &bytes[..], b">"].concat(), 0).next_object() {
                        Some(Object::Text(bytes)) => bytes,
                        _ => return None,
                    }
                }
                "ASCII85Decode" | "A85" => ascii85(&bytes),
                _ => return None,
            };
        }
        (bytes.len() <= limit).then_some(bytes)
    }
}

/// The number of the object whose `obj` follows: `12 0 obj`.
fn number_before(bytes: &[u8]) -> Option<u32> {
    let trim = |bytes: &[u8]| bytes.len() - bytes.iter().rev().take_while(|&&byte| is_space(byte)).count();
    let digits = |bytes: &[u8]| bytes.iter().rev().take(10).take_while(|byte| byte.is_ascii_digit()).count();
    let bytes = &bytes[..trim(bytes)];
    let generation = digits(bytes);
    let before = &bytes[..bytes.len() - generation];
    let number_end = trim(before);
    let number = &before[..number_end];
    let length = digits(number);
    if generation == 0 || length == 0 || number_end == before.len() {
        return None;
    }
    std::str::from_utf8(&number[number.len() - length..]).ok()?.parse().ok()
}

/// Where the stream after a dictionary stands.
fn stream_range(bytes: &[u8], parser: &mut Parser<'_>, entries: &Dictionary) -> Option<(usize, usize)> {
    parser.skip_space();
    let rest = parser.rest().strip_prefix(b"stream")?;
    let rest = rest.strip_prefix(b"\r\n").or_else(|| rest.strip_prefix(b"\n")).unwrap_or(rest);
    let start = bytes.len() - rest.len();
    let told = entries.get("Length").and_then(Object::number).map(|length| length as usize);
    let is_end = |end: &usize| {
        let after = bytes.get(*end..(*end + 16).min(bytes.len())).unwrap_or_default();
        memmem::find(after, b"endstream").is_some()
    };
    let told = told.and_then(|length| start.checked_add(length)).filter(is_end);
    let end = told.or_else(|| memmem::find(rest, b"endstream").map(|end| start + end));
    Some((start, end.unwrap_or(bytes.len())))
}

fn ascii85(bytes: &[u8]) -> Vec<u8> {
    let mut unpacked = Vec::with_capacity(bytes.len());
    let mut group: Vec<u32> = Vec::with_capacity(5);
    let flush = |group: &mut Vec<u32>, unpacked: &mut Vec<u8>| {
        let count = group.len();
        group.resize(5, 84);
        let value = group.iter().fold(0u32, |value, digit| value.wrapping_mul(85).wrapping_add(*digit));
        unpacked.extend(&value.to_be_bytes()[..count.saturating_sub(1)]);
        group.clear();
    };
    for byte in bytes {
        match byte {
            b'~' => break,
            b'z' if group.is_empty() => unpacked.extend([0; 4]),
            b'!'..=b'u' => group.push(u32::from(byte - b'!')),
            _ => {}
        }
        if group.len() == 5 {
            flush(&mut group, &mut unpacked);
        }
    }
    if group.len() > 1 {
        flush(&mut group, &mut unpacked);
    }
    unpacked
}
