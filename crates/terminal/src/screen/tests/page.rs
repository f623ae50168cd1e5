use std::time::Duration;

use proptest::prelude::*;
use ratatui::text::Line;

use super::super::{CursorPlace, Frame, PageScreen, PrintedPicture, Rewrap, ScreenSize};
use super::{Recording, assert_nothing_forbidden, frame};

/// A terminal that keeps its scrollback, after a shell has printed some lines.
struct Emulator(vt100::Parser);

impl Emulator {
    fn new(size: ScreenSize, shell_lines: usize) -> Self {
        let mut parser =
            vt100::Parser::new(size.rows.try_into().unwrap(), size.columns.try_into().unwrap(), 10_000);
        for line in 0..shell_lines {
            parser.process(format!("shell{line:04}\r\n").as_bytes());
        }
        Emulator(parser)
    }

    fn process(&mut self, bytes: &[u8]) {
        self.0.process(bytes);
    }

    fn resize(&mut self, size: ScreenSize) {
        self.0.screen_mut().set_size(size.rows.try_into().unwrap(), size.columns.try_into().unwrap());
    }

    /// Every row, scrolled off or not, oldest first.
    fn all_rows(&mut self) -> Vec<String> {
        let (rows, columns) = self.0.screen().size();
        let (rows, columns) = (usize::from(rows.get()), columns.get());
        let mut all = Vec::new();
        let above = self.0.screen().scrollback_len();
        let mut offset = above;
        while offset > 0 {
            self.0.screen_mut().set_scrollback(offset);
            all.extend(self.0.screen().rows(0, columns).take(rows.min(offset)));
            offset = offset.saturating_sub(rows);
        }
        self.0.screen_mut().set_scrollback(0);
        all.extend(self.0.screen().rows(0, columns));
        all
    }
}

/// Whether each line begins exactly one row.
fn assert_each_once(rows: &[String], prefix: &str, count: usize) {
    for number in 0..count {
        let wanted = format!("{prefix}{number:04}");
        let found = rows.iter().filter(|row| row.starts_with(&wanted)).count();
        assert_eq!(found, 1, "{wanted} in:\n{}", rows.join("\n"));
    }
}

#[derive(Clone, Debug)]
enum Step {
    Draw { printed: usize, width: usize, live: usize },
    Resize { columns: u16, rows: u16 },
    View,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..6usize, 0..150usize, 0..15usize)
            .prop_map(|(printed, width, live)| Step::Draw { printed, width, live }),
        2 => (20..120u16, 16..40u16).prop_map(|(columns, rows)| Step::Resize { columns, rows }),
        1 => Just(Step::View),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn every_printed_line_is_there_once_and_no_line_of_the_shell_is_lost(
        steps in prop::collection::vec(step(), 1..40),
        shell in 0..50usize,
    ) {
        let mut size = ScreenSize { columns: 80, rows: 24 };
        let mut emulator = Emulator::new(size, shell);
        let recording = Recording::default();
        let mut page = PageScreen::new(recording.clone(), Rewrap::No);
        let (mut printed_so_far, mut now) = (0, Duration::ZERO);
        for (number, step) in steps.iter().enumerate() {
            now += Duration::from_millis(100);
            match step {
                Step::Draw { printed, width, live } => {
                    let lines: Vec<String> = (printed_so_far..printed_so_far + printed)
                        .map(|line| format!("P{line:04}{}", "y".repeat(*width)))
                        .collect();
                    printed_so_far += printed;
                    page.draw(&frame(&lines, *live, number), size, now).unwrap();
                }
                Step::Resize { columns, rows } => {
                    size = ScreenSize { columns: *columns, rows: *rows };
                    emulator.resize(size);
                }
                Step::View => {
                    page.erase(size, now).unwrap();
                    page.writer().0.lock().unwrap().extend_from_slice(b"\x1b[?1049hview\x1b[?1049l");
                }
            }
            let bytes = recording.take();
            assert_nothing_forbidden(&bytes);
            emulator.process(&bytes);
        }
        let rows = emulator.all_rows();
        assert_each_once(&rows, "shell", shell);
        assert_each_once(&rows, "P", printed_so_far);
    }

    #[test]
    fn rewriting_what_changed_shows_the_same_as_drawing_all(
        frames in prop::collection::vec((0..10usize, 0..3usize), 1..20),
    ) {
        let size = ScreenSize { columns: 40, rows: 20 };
        let (mut one, mut other) = (Emulator::new(size, 3), Emulator::new(size, 3));
        let (first, second) = (Recording::default(), Recording::default());
        let mut changing = PageScreen::new(first.clone(), Rewrap::Reported);
        let mut whole = PageScreen::new(second.clone(), Rewrap::Reported);
        for (height, number) in frames {
            let frame = frame(&[], height, number);
            changing.draw(&frame, size, Duration::ZERO).unwrap();
            whole.redraw();
            whole.draw(&frame, size, Duration::ZERO).unwrap();
            one.process(&first.take());
            other.process(&second.take());
            prop_assert_eq!(one.0.screen().contents(), other.0.screen().contents());
            prop_assert_eq!(one.0.screen().cursor_position(), other.0.screen().cursor_position());
        }
    }
}

#[test]
fn a_frame_is_one_synchronized_update_and_the_cursor_stands_in_the_live_area() {
    let recording = Recording::default();
    let mut page = PageScreen::new(recording.clone(), Rewrap::Reported);
    let frame = Frame {
        print: vec![Line::from("done")],
        live: vec![Line::from("› ab"), Line::from("ask")],
        cursor: CursorPlace { row: 0, column: 4 },
        ..Frame::default()
    };
    let size = ScreenSize { columns: 80, rows: 24 };
    page.draw(&frame, size, Duration::ZERO).unwrap();
    let expected = "\x1b[?2026h\r\x1b[Jdone\r\n\x1b[?7l› ab\r\nask\x1b[?7h\x1b[1A\r\x1b[4C\x1b[?2026l";
    assert_eq!(String::from_utf8(recording.take()).unwrap(), expected);
}

#[test]
fn an_unchanged_frame_writes_nothing_and_a_key_rewrites_its_row_alone() {
    let recording = Recording::default();
    let mut page = PageScreen::new(recording.clone(), Rewrap::Reported);
    let size = ScreenSize { columns: 80, rows: 24 };
    let typed = |text: &str| Frame {
        live: vec![Line::from("long row that stays"), Line::from(text.to_owned()), Line::from("status")],
        cursor: CursorPlace { row: 1, column: text.len() },
        ..Frame::default()
    };
    page.draw(&typed("a"), size, Duration::ZERO).unwrap();
    recording.take();
    page.draw(&typed("a"), size, Duration::ZERO).unwrap();
    assert_eq!(recording.take(), b"");
    page.draw(&typed("ab"), size, Duration::ZERO).unwrap();
    let expected = "\x1b[?2026h\x1b[?7l\r\x1b[Kab\x1b[?7h\r\x1b[2C\x1b[?2026l";
    assert_eq!(String::from_utf8(recording.take()).unwrap(), expected);
}

#[test]
fn a_full_row_keeps_its_last_column() {
    let size = ScreenSize { columns: 20, rows: 5 };
    let mut emulator = Emulator::new(size, 0);
    let recording = Recording::default();
    let mut page = PageScreen::new(recording.clone(), Rewrap::Reported);
    let full = |c: &str| Frame { live: vec![Line::from(c.repeat(25)), Line::from("s")], ..Frame::default() };
    page.draw(&full("a"), size, Duration::ZERO).unwrap();
    page.draw(&full("b"), size, Duration::ZERO).unwrap();
    emulator.process(&recording.take());
    assert_eq!(emulator.0.screen().contents(), format!("{}\ns", "b".repeat(20)));
}

#[test]
fn where_lines_are_rewrapped_the_way_up_counts_the_rows_that_became_of_the_old_ones() {
    let recording = Recording::default();
    let mut page = PageScreen::new(recording.clone(), Rewrap::Reported);
    let live = vec![Line::from("x".repeat(70)), Line::from("› "), Line::from("s")];
    let frame = Frame { live, cursor: CursorPlace { row: 1, column: 2 }, ..Frame::default() };
    page.draw(&frame, ScreenSize { columns: 80, rows: 24 }, Duration::from_secs(1)).unwrap();
    recording.take();
    let narrow = ScreenSize { columns: 30, rows: 24 };
    page.draw(&frame, narrow, Duration::from_secs(2)).unwrap();
    let bytes = String::from_utf8(recording.take()).unwrap();
    assert!(bytes.starts_with("\x1b[?2026h\x1b[3A\r\x1b[J"), "{bytes:?}");
    // Too soon after a frame the screen may not be what the size says: an old row is better than
    // an erased line.
    page.draw(&frame, ScreenSize { columns: 20, rows: 24 }, Duration::from_millis(2100)).unwrap();
    let bytes = String::from_utf8(recording.take()).unwrap();
    assert!(bytes.starts_with("\x1b[?2026h\x1b[1A\r\x1b[J"), "{bytes:?}");
}

#[test]
fn a_picture_stands_between_its_lines_and_the_live_area_below_it() {
    let recording = Recording::default();
    let mut page = PageScreen::new(recording.clone(), Rewrap::Reported);
    let picture = |after| PrintedPicture { after, bytes: format!("<{after}>") };
    let frame = Frame {
        print: vec![Line::from("one"), Line::from("two")],
        pictures: vec![picture(1), picture(2)],
        live: vec![Line::from("› ")],
        ..Frame::default()
    };
    page.draw(&frame, ScreenSize { columns: 80, rows: 24 }, Duration::ZERO).unwrap();
    let expected = "\x1b[?2026h\r\x1b[Jone\r\n<1>\r\ntwo\r\n<2>\r\n\x1b[?7l› \x1b[?7h\r\x1b[?2026l";
    assert_eq!(String::from_utf8(recording.take()).unwrap(), expected);
}
