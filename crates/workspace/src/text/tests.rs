use std::fs;
use std::process::Command;

use proptest::prelude::*;
use tempfile::{TempDir, tempdir};

use super::*;

fn folder_with(name: &str, bytes: &[u8]) -> (TempDir, std::path::PathBuf) {
    let folder = tempdir().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, bytes).unwrap();
    (folder, path)
}

fn read_bytes(bytes: &[u8], limit: usize) -> Result<TextFile, UnreadableReason> {
    let (_folder, path) = folder_with("file", bytes);
    read_text(&path, limit).map_err(|error| error.reason)
}

fn utf16(text: &str, bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
    "\u{FEFF}".encode_utf16().chain(text.encode_utf16()).flat_map(bytes).collect()
}

#[test]
fn text_is_read_whole() {
    let file = read_bytes("Grüße\r\n\tx\u{c}\u{1b}[1m\n".as_bytes(), TEXT_LIMIT).unwrap();
    assert_eq!(file, TextFile { text: "Grüße\r\n\tx\u{c}\u{1b}[1m\n".into(), truncation: None });
    assert_eq!(read_bytes(b"", TEXT_LIMIT).unwrap().text, "");
}

#[test]
fn a_missing_file_is_named() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("nowhere.txt");
    let error = read_text(&path, TEXT_LIMIT).unwrap_err();
    assert!(matches!(error.reason, UnreadableReason::Missing));
    assert_eq!(error.to_string(), format!("{} does not exist: check the spelling", path.display()));
}

#[test]
fn a_file_in_a_file_is_missing() {
    let (_folder, path) = folder_with("a.txt", b"a");
    assert!(matches!(read_text(&path.join("b"), TEXT_LIMIT).unwrap_err().reason, UnreadableReason::Missing));
}

#[test]
fn a_directory_is_not_read() {
    let folder = tempdir().unwrap();
    assert!(matches!(read_text(folder.path(), TEXT_LIMIT).unwrap_err().reason, UnreadableReason::Directory));
}

#[test]
#[cfg(unix)]
fn a_named_pipe_does_not_block() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    for path in [path, link] {
        let error = read_text(&path, TEXT_LIMIT).unwrap_err();
        assert!(matches!(error.reason, UnreadableReason::Special("a named pipe")), "{error}");
    }
}

#[test]
#[cfg(unix)]
fn a_device_and_a_socket_are_not_read() {
    let error = read_text(Path::new("/dev/zero"), TEXT_LIMIT).unwrap_err();
    assert!(matches!(error.reason, UnreadableReason::Special("a device")), "{error}");

    let folder = tempdir().unwrap();
    let path = folder.path().join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let error = read_text(&path, TEXT_LIMIT).unwrap_err();
    assert!(matches!(error.reason, UnreadableReason::Special("a socket")), "{error}");
}

#[test]
#[cfg(unix)]
fn a_loop_of_links_is_an_error() {
    let folder = tempdir().unwrap();
    let (a, b) = (folder.path().join("a"), folder.path().join("b"));
    std::os::unix::fs::symlink(&a, &b).unwrap();
    std::os::unix::fs::symlink(&b, &a).unwrap();
    assert!(matches!(read_text(&a, TEXT_LIMIT).unwrap_err().reason, UnreadableReason::Io(_)));
}

#[test]
#[cfg(unix)]
fn a_file_without_permissions_is_read_or_named() {
    use std::os::unix::fs::PermissionsExt;
    let (_folder, path) = folder_with("secret", b"s");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    // Whoever may read everything reads this, too.
    match read_text(&path, TEXT_LIMIT) {
        Ok(file) => assert_eq!(file.text, "s"),
        Err(error) => assert!(matches!(error.reason, UnreadableReason::Permission), "{error}"),
    }
    let refused = UnreadableReason::from(std::io::Error::from(std::io::ErrorKind::PermissionDenied));
    assert!(matches!(refused, UnreadableReason::Permission));
}

#[test]
fn binary_files_are_not_read() {
    assert!(matches!(
        read_bytes(b"\x7fELF\x02\x01\x01\0\0\0", 100),
        Err(UnreadableReason::Binary { offset: 0 })
    ));
    assert!(matches!(
        read_bytes(b"a text, then a NUL: \0", 100),
        Err(UnreadableReason::Binary { offset: 20 })
    ));
    assert!(matches!(read_bytes(b"ab\x01\x02", 100), Err(UnreadableReason::Binary { offset: 2 })));
    assert!(read_bytes(format!("{}\x01", "word ".repeat(20)).as_bytes(), 200).is_ok());
}

#[test]
fn latin_1_is_refused_at_its_first_wrong_byte() {
    assert!(matches!(read_bytes(b"caf\xe9 au lait", 100), Err(UnreadableReason::NotUtf8 { offset: 3 })));
    assert!(matches!(read_bytes(b"\xef\xbb\xbfcaf\xe9 ", 100), Err(UnreadableReason::NotUtf8 { offset: 6 })));
    assert!(matches!(read_bytes(b"caf\xc3", 100), Err(UnreadableReason::NotUtf8 { offset: 3 })));
    assert!(matches!(read_bytes(b"caf\xe9 au lait", 8), Err(UnreadableReason::NotUtf8 { offset: 3 })));
}

#[test]
fn a_byte_order_mark_is_not_text() {
    assert_eq!(read_bytes(b"\xef\xbb\xbfhi", 100).unwrap().text, "hi");
}

#[test]
fn utf_16_with_a_mark_is_decoded() {
    let text = "Grüße, 𝄞\r\n";
    assert_eq!(read_bytes(&utf16(text, u16::to_le_bytes), 100).unwrap().text, text);
    assert_eq!(read_bytes(&utf16(text, u16::to_be_bytes), 100).unwrap().text, text);
}

#[test]
fn damaged_utf_16_is_refused_at_its_first_wrong_byte() {
    assert!(matches!(
        read_bytes(b"\xff\xfea\0\0\xd8b\0", 100),
        Err(UnreadableReason::NotUtf16 { offset: 4 })
    ));
    assert!(matches!(read_bytes(b"\xff\xfea\0b", 100), Err(UnreadableReason::NotUtf16 { offset: 4 })));
    // UTF-32 begins with UTF-16's mark.
    assert!(matches!(read_bytes(b"\xff\xfe\0\0a\0\0\0", 100), Err(UnreadableReason::Binary { offset: 2 })));
}

#[test]
fn a_huge_file_is_cut_after_a_line() {
    let line = "0123456789\n";
    let file = read_bytes(line.repeat(200_000).as_bytes(), TEXT_LIMIT).unwrap();
    let shown_bytes = TEXT_LIMIT / line.len() * line.len();
    assert_eq!(file.truncation, Some(Truncation { shown_bytes, total_bytes: 2_200_000 }));
    assert_eq!(file.text.len(), shown_bytes);
    assert!(file.text.ends_with('\n'));
}

#[test]
fn a_long_line_is_cut_after_a_character() {
    let file = read_bytes("x\néééé".as_bytes(), 7).unwrap();
    assert_eq!(
        file,
        TextFile { text: "x\néé".into(), truncation: Some(Truncation { shown_bytes: 6, total_bytes: 10 }) }
    );
    let file = read_bytes(&utf16("𝄞𝄞", u16::to_le_bytes), 8).unwrap();
    assert_eq!(
        file,
        TextFile { text: "𝄞".into(), truncation: Some(Truncation { shown_bytes: 6, total_bytes: 10 }) }
    );
}

#[test]
fn a_file_of_exactly_the_limit_is_whole() {
    assert_eq!(read_bytes(b"12345", 5).unwrap().truncation, None);
    assert_eq!(
        read_bytes(b"12345", 0).unwrap().truncation,
        Some(Truncation { shown_bytes: 0, total_bytes: 5 })
    );
}

#[test]
#[cfg(target_os = "linux")]
fn a_file_of_the_system_with_no_size_is_read() {
    assert!(read_text(Path::new("/proc/self/status"), TEXT_LIMIT).unwrap().text.contains("Name:"));
}

proptest! {
    #[test]
    fn what_is_shown_is_a_prefix(text in "[a-zé𝄞\n]{0,60}", limit in 0usize..80) {
        let file = read_bytes(text.as_bytes(), limit).unwrap();
        prop_assert!(text.starts_with(&file.text));
        match file.truncation {
            None => prop_assert_eq!(&file.text, &text),
            Some(cut) => {
                prop_assert_eq!(cut, Truncation { shown_bytes: file.text.len(), total_bytes: text.len() });
                prop_assert!(cut.shown_bytes <= limit && text.len() > limit);
            }
        }
        let wide = decode(&utf16(&text, u16::to_be_bytes), FilePortion::Whole).unwrap();
        prop_assert_eq!(wide.0, text);
    }

    #[test]
    fn no_bytes_break_the_reader(bytes in prop::collection::vec(any::<u8>(), 0..64), limit in 0usize..70) {
        let marked = [&[0xFF, 0xFE], &bytes[..]].concat();
        for bytes in [bytes, marked] {
            match read_bytes(&bytes, limit).map(|file| file.truncation) {
                Ok(None) => prop_assert!(bytes.len() <= limit),
                Ok(Some(cut)) => {
                    prop_assert!(cut.shown_bytes <= limit, "{:?}", cut);
                    prop_assert_eq!(cut.total_bytes, bytes.len());
                }
                Err(reason) => prop_assert!(!reason.to_string().is_empty()),
            }
        }
    }
}
