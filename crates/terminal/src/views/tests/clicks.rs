//! What the mouse does in views, with `mouse = true`.

use super::*;

/// The row of the screen that is marked as chosen.
fn marked_row(view: &mut Box<dyn View>, face: &TestFace) -> Option<usize> {
    let is_marked = |line: &Line<'_>| line.to_string().trim_start().starts_with('›');
    view.draw(&face.model).rows.iter().position(is_marked)
}

#[test]
fn a_click_chooses_a_row_and_another_one_on_it_opens_it() {
    let mut shown = String::new();
    for rows in [9, 24] {
        let face = TestFace::new(100, rows);
        for (name, kind, data) in kinds() {
            for row in 0..rows {
                let mut view = open_view(kind.clone(), data.clone()).unwrap();
                let before = view.draw(&face.model);
                let mut click =
                    || view.take_input(&InputEvent::Click { row, column: 3 }, face.now, &face.model);
                let (first, second) = (word(&click()), word(&click()));
                let is_changed = view.draw(&face.model) != before;
                if is_changed || (&*first, &*second) != ("·", "·") {
                    let marked = marked_row(&mut view, &face);
                    shown.push_str(&format!(
                        "{name} {rows} row {row}: {first}, {second}, marked {marked:?}\n"
                    ));
                }
            }
        }
    }
    insta::assert_snapshot!(shown);
}

#[test]
fn what_is_chosen_by_a_click_stands_in_the_row_that_was_clicked_however_far_it_is_scrolled() {
    let lines = |chosen: usize| ViewLines {
        head: vec![Line::from("head")],
        rows: (0..80).map(|row| Line::from(row.to_string())).collect(),
        foot: vec![Line::from("keys")],
        // Entries of two rows.
        chosen: Some((2 * chosen, 2 * chosen + 2)),
    };
    for chosen in 0..40 {
        for row in 0..12 {
            let entry = clicked_entry(row, 12, (40, chosen), lines);
            let expected = lines(chosen).row_on_screen(12, row.into()).map(|row| row / 2);
            assert_eq!(entry, expected, "{chosen} {row}");
        }
    }
    assert_eq!(clicked_entry(5, 12, (0, 0), |_| ViewLines::default()), None);
}
