use miniz_oxide::deflate::compress_to_vec_zlib;
use proptest::prelude::*;

use super::*;

/// A file with these objects, numbered from 1, the first of them the catalogue.
fn file(objects: &[String]) -> Vec<u8> {
    let mut bytes = b"%PDF-1.7\n%\xE2\xE3\xCF\xD3\n".to_vec();
    for (at, object) in objects.iter().enumerate() {
        bytes.extend(format!("{} 0 obj\n{object}\nendobj\n", at + 1).bytes());
    }
    bytes
        .extend(b"trailer\n<< /Root 1 0 R /Info << /Title (A \\(small\\) file) >> >>\nstartxref\n0\n%%EOF\n");
    bytes
}

fn stream(entries: &str, content: &str) -> String {
    format!("<< {entries} /Length {} >>\nstream\n{content}\nendstream", content.len())
}

/// A file with a page whose content this is. The font F1 is a usual one.
fn page(content: &str) -> Vec<u8> {
    file(&[
        "<< /Type /Catalog /Pages 2 0 R >>".into(),
        "<< /Type /Pages /Kids [3 0 R] /Count 1 /Resources << /Font << /F1 4 0 R >> >> >>".into(),
        "<< /Type /Page /Parent 2 0 R /Contents 5 0 R >>".into(),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /FirstChar 32 /Widths [278 278] >>".into(),
        stream("", content),
    ])
}

fn text(bytes: &[u8]) -> String {
    pdf_to_text(bytes).map(|read| read.text).unwrap_or_else(|error| error.to_string())
}

#[test]
fn lines_words_and_paragraphs_are_where_the_positions_say() {
    let content = "BT /F1 12 Tf 72 720 Td (First line) Tj 0 -14 Td (second line) Tj 0 -40 Td (A paragraph) Tj \
        T* [(Ke) 20 (rned) -600 (words)] TJ ET";
    let read = pdf_to_text(&page(content)).unwrap();
    assert_eq!(read.title.as_deref(), Some("A (small) file"));
    assert_eq!(read.text, "First line\nsecond line\n\nA paragraph\nKerned words");
    // Each word by its own place, as most programs write it.
    let content =
        "BT /F1 10 Tf 1 0 0 1 10 700 Tm (One) Tj 1 0 0 1 40 700 Tm (two) Tj 1 0 0 1 10 688 Tm (three) Tj ET";
    assert_eq!(text(&page(content)), "One two\nthree");
    let scaled =
        "q 0.1 0 0 0.1 0 0 cm BT /F1 100 Tf 100 7000 Td (One) Tj 300 0 Td (two) Tj 0 -120 Td (three) Tj ET Q";
    assert_eq!(text(&page(scaled)), "One two\nthree");
    let quotes = "BT /F1 12 Tf 14 TL 10 700 Td (a) Tj (b) ' 1 2 (c) \" ET";
    assert_eq!(text(&page(quotes)), "a\nb\nc");
    let image =
        "BT /F1 12 Tf 10 700 Td (before) Tj ET BI /W 2 /H 1 ID \u{1}(EI) EI BT 10 680 Td (after) Tj ET";
    assert_eq!(text(&page(image)), "before\nafter");
}

#[test]
fn packed_objects_and_own_encodings_are_read() {
    let packed = |bytes: &[u8]| compress_to_vec_zlib(bytes, 6);
    let parts = [
        "<< /Type /Catalog /Pages 2 0 R >> ",
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >> ",
        "<< /Type /Page /Contents [7 0 R 7 0 R] /Resources << /Font << /F1 5 0 R /F2 6 0 R >> >> >>",
    ];
    let header = format!("1 0 2 {} 3 {} ", parts[0].len(), parts[0].len() + parts[1].len());
    let (first, objects) = (header.len(), header + &parts.concat());
    let map = "1 begincodespacerange <0000> <FFFF> endcodespacerange 2 beginbfrange <0001> <0003> <0041> \
        <0004> <0005> [<00660069> <20AC>] endbfrange 1 beginbfchar <0010> <00E4> endbfchar";
    let content =
        "BT /F1 10 Tf 10 700 Td <000100020003000400050010> Tj /F2 10 Tf 0 -12 Td (\\001\\002\\226) Tj ET";
    let mut bytes = b"%PDF-1.5\n".to_vec();
    let mut add = |head: String, content: &[u8]| {
        let content = packed(content);
        bytes.extend(format!("{head} /Filter /FlateDecode /Length {} >>\nstream\n", content.len()).bytes());
        bytes.extend(content);
        bytes.extend(b"\nendstream\nendobj\n");
    };
    add(format!("4 0 obj << /Type /ObjStm /N 3 /First {first}"), objects.as_bytes());
    add("7 0 obj <<".into(), content.as_bytes());
    add("8 0 obj <<".into(), map.as_bytes());
    bytes.extend(b"5 0 obj << /Type /Font /Subtype /Type0 /ToUnicode 8 0 R /DescendantFonts [<< /DW 500 >>] >> endobj\n");
    bytes.extend(
        b"6 0 obj << /Type /Font /Subtype /Type1 /Encoding << /Differences [1 /fl /adieresis] >> >> endobj\n",
    );
    assert_eq!(text(&bytes), "ABCfi€ä\nfl\u{e4}–\nABCfi€ä\nfl\u{e4}–");
}

#[test]
fn a_file_that_is_cut_gives_what_it_has_and_others_say_what_they_are() {
    let whole = page("BT /F1 12 Tf 10 700 Td (The words of the page, all of them.) Tj ET");
    let content_end = memchr::memmem::find(&whole, b"endstream").unwrap();
    assert!(text(&whole[..content_end]).starts_with("The words"), "{}", text(&whole[..content_end]));
    assert_eq!(pdf_to_text(b"no such file"), Err(PdfError::NotPdf));
    assert_eq!(pdf_to_text(&page("0 0 100 100 re f")), Err(PdfError::NoText));
    let encrypted = String::from_utf8_lossy(&whole).replace("/Root 1 0 R", "/Root 1 0 R /Encrypt 9 0 R");
    assert_eq!(pdf_to_text(encrypted.as_bytes()), Err(PdfError::Encrypted));
}

#[test]
fn files_that_unpack_without_end_or_lead_in_circles_end() {
    // 200 MB of zeros in 200 kB, drawn again and again.
    let bomb = compress_to_vec_zlib(&vec![b' '; 15 << 20], 6);
    let mut bytes = b"%PDF-1.5\n1 0 obj << /Type /Catalog /Pages 2 0 R >> endobj\n".to_vec();
    bytes.extend(b"2 0 obj << /Kids [2 0 R 3 0 R 3 0 R] >> endobj\n");
    let contents = "4 0 R ".repeat(1000);
    bytes.extend(format!("3 0 obj << /Type /Page /Contents [{contents}] >> endobj\n").bytes());
    bytes.extend(format!("4 0 obj << /Filter /FlateDecode /Length {} >> stream\n", bomb.len()).bytes());
    bytes.extend(bomb);
    bytes.extend(b"\nendstream endobj\n5 0 obj 6 0 R endobj 6 0 obj 5 0 R endobj");
    assert_eq!(pdf_to_text(&bytes), Err(PdfError::NoText));
    // A drawing that contains itself.
    let forms = file(&[
        "<< /Type /Catalog /Pages 2 0 R >>".into(),
        "<< /Kids [3 0 R] >>".into(),
        "<< /Type /Page /Contents 4 0 R /Resources 5 0 R >>".into(),
        stream("/Type /XObject /Subtype /Form", "/X Do /X Do /X Do BT /F1 9 Tf (x) Tj ET"),
        "<< /XObject << /X 4 0 R >> /Font << /F1 << /Subtype /Type1 >> >> >>".into(),
    ]);
    assert!(text(&forms).len() < 10_000);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_bytes_make_it_panic(at in 0usize..900, with in proptest::collection::vec(any::<u8>(), 1..20)) {
        let mut bytes = page("BT /F1 12 Tf 72 720 Td (First line) Tj [(a) -300 (b)] TJ /X Do ET");
        let at = at.min(bytes.len());
        let end = (at + with.len()).min(bytes.len());
        bytes.splice(at..end, with);
        let _ = pdf_to_text(&bytes);
    }
}
