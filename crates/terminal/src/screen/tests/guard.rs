use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};

use super::super::{GuardOptions, RawMode, TerminalGuard};
use super::Recording;

/// Counts how often raw mode is on.
#[derive(Clone, Default)]
struct CountedRawMode(Arc<Mutex<i32>>);

impl RawMode for CountedRawMode {
    fn enable(&mut self) -> std::io::Result<()> {
        *self.0.lock().unwrap() += 1;
        Ok(())
    }

    fn disable(&mut self) -> std::io::Result<()> {
        *self.0.lock().unwrap() -= 1;
        Ok(())
    }
}

/// The private modes that are on after these bytes.
fn modes_on(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let mut on: Vec<String> = Vec::new();
    for part in text.split("\x1b[?").skip(1) {
        let end = part.find(['h', 'l']).unwrap();
        let mode = part[..end].to_owned();
        on.retain(|known| *known != mode);
        if part.as_bytes()[end] == b'h' {
            on.push(mode);
        }
    }
    on
}

#[test]
fn every_mode_that_was_switched_on_is_off_again_after_a_drop() {
    let (recording, raw) = (Recording::default(), CountedRawMode::default());
    let guard = TerminalGuard::enter(raw.clone(), recording.clone(), GuardOptions::default()).unwrap();
    guard.set_title("asks").unwrap();
    guard.enter_alternate().unwrap();
    let before = recording.take();
    assert_eq!(modes_on(&before), ["2004", "1004", "1049", "1007"]);
    assert_eq!(*raw.0.lock().unwrap(), 1);
    drop(guard);
    let after = [before, recording.take()].concat();
    // Autowrap and the cursor are on by default.
    assert_eq!(modes_on(&after), ["7", "25"]);
    let text = String::from_utf8(after).unwrap();
    assert_eq!((text.matches("\x1b[>1u").count(), text.matches("\x1b[<u").count()), (1, 1));
    assert_eq!((text.matches("\x1b[22;0t").count(), text.matches("\x1b[23;0t").count()), (1, 1));
    assert_eq!(*raw.0.lock().unwrap(), 0);
}

#[test]
fn the_mouse_is_taken_in_the_alternate_screen_alone_and_never_left_on() {
    let recording = Recording::default();
    let options = GuardOptions { takes_mouse: true, ..GuardOptions::default() };
    let guard = TerminalGuard::enter(CountedRawMode::default(), recording.clone(), options).unwrap();
    let mut bytes = recording.take();
    assert_eq!(modes_on(&bytes), ["2004", "1004"]);
    guard.enter_alternate().unwrap();
    bytes.extend(recording.take());
    assert_eq!(modes_on(&bytes), ["2004", "1004", "1049", "1007", "1000", "1006"]);
    guard.leave_alternate().unwrap();
    bytes.extend(recording.take());
    assert_eq!(modes_on(&bytes), ["2004", "1004"]);
    // A signal, a panic, the shell or an editor in between.
    guard.enter_alternate().unwrap();
    guard.handle().restore().unwrap();
    bytes.extend(recording.take());
    assert_eq!(modes_on(&bytes), ["7", "25"]);
}

#[test]
fn restoring_twice_restores_once_and_suspending_takes_it_back_again() {
    let (recording, raw) = (Recording::default(), CountedRawMode::default());
    let guard = TerminalGuard::enter(raw.clone(), recording.clone(), GuardOptions::default()).unwrap();
    guard.suspend().unwrap();
    guard.suspend().unwrap();
    assert_eq!(*raw.0.lock().unwrap(), 0);
    guard.resume().unwrap();
    assert_eq!(*raw.0.lock().unwrap(), 1);
    guard.handle().restore().unwrap();
    recording.take();
    drop(guard);
    assert_eq!((recording.take(), *raw.0.lock().unwrap()), (Vec::new(), 0));
}

#[test]
fn a_restoration_erases_the_live_area_that_the_page_left() {
    let rows = Arc::new(AtomicU16::new(3));
    let recording = Recording::default();
    let options = GuardOptions { rows_above_cursor: Some(rows.clone()), ..GuardOptions::default() };
    let guard = TerminalGuard::enter(CountedRawMode::default(), recording.clone(), options).unwrap();
    recording.take();
    drop(guard);
    let text = String::from_utf8(recording.take()).unwrap();
    assert!(text.starts_with("\x1b[?2026l\x1b[3A\r\x1b[J"), "{text:?}");
    assert_eq!(rows.load(Ordering::Relaxed), 0);
}

#[test]
fn a_title_cannot_end_its_own_sequence() {
    let recording = Recording::default();
    let guard =
        TerminalGuard::enter(CountedRawMode::default(), recording.clone(), GuardOptions::default()).unwrap();
    recording.take();
    guard.set_title("a\x07\x1b[2Jb").unwrap();
    assert_eq!(recording.take(), b"\x1b[22;0t\x1b]2;a[2Jb\x07");
}
