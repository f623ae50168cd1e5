//! PDF to text: [`pdf_to_text`].
//!
//! The text comes in the order in which the file draws it, with line ends and spaces where the positions
//! of the characters say so. Tables and columns are not put together again. Files may be hostile: the
//! work, the memory and the depth have limits, and no part is trusted to fit another one.

mod file; // PdfFile: the objects of a file
mod font; // Font: codes to characters
mod object; // Object and its parser

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use self::file::PdfFile;
use self::font::{Font, description_text};
use self::object::{Dictionary, Object, Parser, is_space};

/// The most pages that are read.
const MAX_PAGES: usize = 2_000;
/// The most bytes of text; more than any answer or page of the context shows.
const MAX_TEXT_BYTES: usize = 2 << 20;
/// The most operators of a file.
const MAX_OPERATORS: usize = 5_000_000;
/// How deep drawings may contain drawings.
const MAX_FORMS: usize = 6;
/// How deep the tree of pages may be.
const MAX_TREE_DEPTH: usize = 40;

/// Why a file has no text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PdfError {
    #[error("it says that it is a PDF file, but it is none")]
    NotPdf,
    #[error("it is an encrypted PDF file")]
    Encrypted,
    #[error("it is a PDF file without text, such as a scan")]
    NoText,
}

/// The text of a PDF file.
#[derive(Debug, PartialEq, Eq)]
pub struct PdfText {
    pub title: Option<String>,
    /// The pages, with an empty line between them.
    pub text: String,
}

/// The text of a PDF file. Also of the beginning of one.
pub fn pdf_to_text(bytes: &[u8]) -> Result<PdfText, PdfError> {
    let file = PdfFile::read(bytes)?;
    let mut extractor = Extractor { file: &file, fonts: BTreeMap::new(), operators: 0, text: String::new() };
    for (page, resources) in pages(&file) {
        if extractor.is_full() {
            break;
        }
        extractor.draw_page(page, resources);
    }
    let text = extractor.text.trim().to_owned();
    if text.is_empty() {
        return Err(PdfError::NoText);
    }
    let title =
        file.dictionary(file.trailer.get("Info")).and_then(|info| match file.resolve(info.get("Title")?) {
            Object::Text(bytes) => Some(description_text(bytes).trim().to_owned()),
            _ => None,
        });
    Ok(PdfText { title: title.filter(|title| !title.is_empty()), text })
}

/// The pages in order, each with its resources, which it may have from those above it. Without a tree of
/// pages, all that there are.
fn pages<'a>(file: &'a PdfFile<'_>) -> Vec<(&'a Dictionary, Option<&'a Object>)> {
    let mut found = Vec::new();
    let root = file.dictionary(file.trailer.get("Root"));
    let root = root.or_else(|| file.of_type("Catalog").map(|(_, entries)| entries).last());
    if let Some(tree) = root.and_then(|root| root.get("Pages")) {
        collect_pages(file, tree, None, 0, &mut BTreeSet::new(), &mut found);
    }
    if found.is_empty() {
        let all = file.of_type("Page").map(|(_, page)| (page, page.get("Resources")));
        found.extend(all.take(MAX_PAGES));
    }
    found
}

fn collect_pages<'a>(
    file: &'a PdfFile<'_>,
    node: &'a Object,
    above: Option<&'a Object>,
    depth: usize,
    seen: &mut BTreeSet<u32>,
    found: &mut Vec<(&'a Dictionary, Option<&'a Object>)>,
) {
    let is_new = match node {
        Object::Reference(number) => seen.insert(*number),
        _ => true,
    };
    let Some(entries) = file.dictionary(Some(node)) else { return };
    if !is_new || depth > MAX_TREE_DEPTH || found.len() >= MAX_PAGES {
        return;
    }
    let resources = entries.get("Resources").or(above);
    if entries.contains_key("Kids") {
        for kid in file.array(entries.get("Kids")) {
            collect_pages(file, kid, resources, depth + 1, seen, found);
        }
    } else {
        found.push((entries, resources));
    }
}

/// A transformation of the plane, as PDF writes it.
type Matrix = [f64; 6];

const UNCHANGED: Matrix = [1.0, 0.0, 0.0, 1.0, 0.0, 0.0];

/// First `a`, then `b`.
fn combine(a: &Matrix, b: &Matrix) -> Matrix {
    [
        a[0] * b[0] + a[1] * b[2],
        a[0] * b[1] + a[1] * b[3],
        a[2] * b[0] + a[3] * b[2],
        a[2] * b[1] + a[3] * b[3],
        a[4] * b[0] + a[5] * b[2] + b[4],
        a[4] * b[1] + a[5] * b[3] + b[5],
    ]
}

struct Extractor<'a, 'b> {
    file: &'a PdfFile<'b>,
    /// The fonts by the number of their object.
    fonts: BTreeMap<u32, Rc<Font>>,
    operators: usize,
    text: String,
}

/// Where the next character goes, and how.
struct TextState {
    page: Matrix,
    saved: Vec<Matrix>,
    line: Matrix,
    at: Matrix,
    font: Option<Rc<Font>>,
    size: f64,
    leading: f64,
    character_spacing: f64,
    word_spacing: f64,
    /// Where the last character ended, and its height.
    end: Option<(f64, f64, f64)>,
}

impl Extractor<'_, '_> {
    fn is_full(&self) -> bool {
        self.text.len() >= MAX_TEXT_BYTES || self.operators >= MAX_OPERATORS
    }

    fn draw_page(&mut self, page: &Dictionary, resources: Option<&Object>) {
        let mut content = Vec::new();
        let Some(contents) = page.get("Contents") else { return };
        let parts = match self.file.resolve(contents) {
            Object::Array(parts) => parts.as_slice(),
            _ => std::slice::from_ref(contents),
        };
        for part in parts {
            if let Some((_, bytes)) = self.file.stream(part) {
                content.extend(bytes);
                content.push(b'\n');
            }
        }
        if !self.text.is_empty() {
            self.text.truncate(self.text.trim_end().len());
            self.text.push_str("\n\n");
        }
        let mut state = TextState {
            page: UNCHANGED,
            saved: Vec::new(),
            line: UNCHANGED,
            at: UNCHANGED,
            font: None,
            size: 1.0,
            leading: 0.0,
            character_spacing: 0.0,
            word_spacing: 0.0,
            end: None,
        };
        self.draw(&content, self.file.dictionary(resources), &mut state, 0);
    }

    fn draw(&mut self, content: &[u8], resources: Option<&Dictionary>, state: &mut TextState, depth: usize) {
        let mut parser = Parser::new(content, 0);
        let mut operands: Vec<Object> = Vec::new();
        while let Some(object) = parser.next_object() {
            let Object::Operator(word) = object else {
                // No operator takes so many.
                if operands.len() < 100 {
                    operands.push(object);
                }
                continue;
            };
            self.operators += 1;
            if self.is_full() {
                return;
            }
            match &*word {
                "BI" => skip_image(&mut parser),
                "Do" => self.draw_form(&operands, resources, state, depth),
                "Tf" => {
                    state.font = self.font(&operands, resources);
                    state.size = number(&operands, 1);
                }
                word => self.operate(word, &operands, state),
            }
            operands.clear();
        }
    }

    fn operate(&mut self, word: &str, operands: &[Object], state: &mut TextState) {
        let matrix = || [0, 1, 2, 3, 4, 5].map(|at| number(operands, at));
        match word {
            "q" if state.saved.len() < 100 => state.saved.push(state.page),
            "Q" => state.page = state.saved.pop().unwrap_or(state.page),
            "cm" => state.page = combine(&matrix(), &state.page),
            "BT" => (state.line, state.at) = (UNCHANGED, UNCHANGED),
            "Tm" => (state.line, state.at) = (matrix(), matrix()),
            "TL" => state.leading = number(operands, 0),
            "Tc" => state.character_spacing = number(operands, 0),
            "Tw" => state.word_spacing = number(operands, 0),
            "Td" => state.move_line(number(operands, 0), number(operands, 1)),
            "TD" => {
                state.leading = -number(operands, 1);
                state.move_line(number(operands, 0), number(operands, 1));
            }
            "T*" => state.move_line(0.0, -state.leading),
            "Tj" => self.show_all(operands, state),
            "'" | "\"" => {
                state.move_line(0.0, -state.leading);
                self.show_all(operands, state);
            }
            "TJ" => {
                let Some(Object::Array(parts)) = operands.first() else { return };
                for part in parts {
                    match part {
                        Object::Text(bytes) => self.show(bytes, state),
                        Object::Number(back) => state.advance(-back / 1000.0 * state.size),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }

    fn show_all(&mut self, operands: &[Object], state: &mut TextState) {
        if let Some(Object::Text(bytes)) = operands.last() {
            self.show(bytes, state);
        }
    }

    fn show(&mut self, bytes: &[u8], state: &mut TextState) {
        let Some(font) = state.font.clone() else { return };
        for (text, width, is_space) in font.decode(bytes) {
            let place = combine(&state.at, &state.page);
            let height = (place[2].hypot(place[3]) * state.size).abs().max(0.01);
            self.separate(state.end, (place[4], place[5]), height);
            self.text.extend(text.chars().filter(|c| !c.is_control()));
            let spacing = state.character_spacing + if is_space { state.word_spacing } else { 0.0 };
            state.advance(width / 1000.0 * state.size);
            let end = combine(&state.at, &state.page);
            state.end = Some((end[4], end[5], height));
            state.advance(spacing);
        }
    }

    /// Line ends and spaces between the end of the last character and the next one.
    fn separate(&mut self, last: Option<(f64, f64, f64)>, (x, y): (f64, f64), height: f64) {
        let Some((last_x, last_y, last_height)) = last else { return };
        let size = height.max(last_height);
        let (down, right) = ((last_y - y).abs(), x - last_x);
        if down > size * 0.5 || right < -size * 2.0 {
            self.text.truncate(self.text.trim_end_matches(' ').len());
            let is_paragraph = down > size * 1.8;
            self.text.push_str(if is_paragraph { "\n\n" } else { "\n" });
        } else if right > size * 0.18 && !self.text.ends_with(char::is_whitespace) {
            self.text.push(' ');
        }
    }

    fn font(&mut self, operands: &[Object], resources: Option<&Dictionary>) -> Option<Rc<Font>> {
        let name = operands.first()?.name()?;
        let named = self.file.dictionary(resources?.get("Font"))?.get(name)?;
        let entries = self.file.dictionary(Some(named))?;
        match named {
            Object::Reference(number) => {
                let file = self.file;
                let font = self.fonts.entry(*number).or_insert_with(|| Rc::new(Font::read(file, entries)));
                Some(font.clone())
            }
            _ => {
                // Such a font is read each time, which takes as long as many operators.
                self.operators += 1_000;
                Some(Rc::new(Font::read(self.file, entries)))
            }
        }
    }

    fn draw_form(
        &mut self,
        operands: &[Object],
        resources: Option<&Dictionary>,
        state: &mut TextState,
        depth: usize,
    ) {
        let named = || {
            let name = operands.first()?.name()?;
            self.file.dictionary(resources?.get("XObject"))?.get(name)
        };
        let Some(form) = named().filter(|_| depth < MAX_FORMS) else { return };
        let is_form = self
            .file
            .dictionary(Some(form))
            .is_some_and(|entries| entries.get("Subtype").and_then(Object::name) == Some("Form"));
        let Some((entries, content)) = is_form.then(|| self.file.stream(form)).flatten() else { return };
        let before = state.page;
        let matrix = self.file.array(entries.get("Matrix"));
        if matrix.len() == 6 {
            state.page = combine(&[0, 1, 2, 3, 4, 5].map(|at| number(matrix, at)), &state.page);
        }
        let own = self.file.dictionary(entries.get("Resources")).or(resources);
        self.draw(&content, own, state, depth + 1);
        state.page = before;
    }
}

impl TextState {
    fn move_line(&mut self, right: f64, up: f64) {
        self.line = combine(&[1.0, 0.0, 0.0, 1.0, right, up], &self.line);
        self.at = self.line;
    }

    fn advance(&mut self, right: f64) {
        self.at = combine(&[1.0, 0.0, 0.0, 1.0, right, 0.0], &self.at);
    }
}

fn number(operands: &[Object], at: usize) -> f64 {
    operands.get(at).and_then(Object::number).unwrap_or(0.0)
}

/// Passes over the bytes of an image in the content: `BI … ID … EI`.
fn skip_image(parser: &mut Parser<'_>) {
    let rest = parser.rest();
    let is_end = |at: &usize| {
        let around = |byte: Option<&u8>| byte.is_none_or(|byte| is_space(*byte));
        around(rest.get(at.wrapping_sub(1))) && around(rest.get(at + 2))
    };
    let end = memchr::memmem::find_iter(rest, b"EI").find(is_end);
    parser.at += end.map_or(rest.len(), |end| end + 2);
}

#[cfg(test)]
mod tests;
