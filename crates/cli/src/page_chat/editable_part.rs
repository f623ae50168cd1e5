//! [`EditablePart`]: what of a call a person can change in an editor, as one text.

use serde_json::Value;

/// Where the one text of a call is.
const SINGLE_PLACES: [&str; 3] = ["/command", "/content", "/new_text"];

/// The texts of a call's arguments that a person can change: the command, the content of a file, or the
/// new text of each edit.
#[derive(Clone, Debug)]
pub struct EditablePart {
    args: Value,
    /// Where the texts are, as JSON pointers.
    places: Vec<String>,
    /// The line before each text; none if there is one text alone.
    marks: Vec<String>,
}

impl EditablePart {
    /// What can be changed of a call with these arguments; none if nothing.
    pub fn of(args: &Value) -> Option<Self> {
        let edits = args["edits"].as_array().map_or(&[][..], Vec::as_slice);
        let is_text = |place: &str| args.pointer(place).is_some_and(Value::is_string);
        let places: Vec<String> = match edits.len() {
            0 => {
                SINGLE_PLACES.into_iter().filter(|place| is_text(place)).take(1).map(str::to_owned).collect()
            }
            count => (0..count).map(|index| format!("/edits/{index}/new_text")).collect(),
        };
        if places.is_empty() || !places.iter().all(|place| is_text(place)) {
            return None;
        }
        let marks = if places.len() == 1 { Vec::new() } else { marks(edits) };
        Some(EditablePart { args: args.clone(), places, marks })
    }

    /// The text for the editor.
    pub fn text(&self) -> String {
        let texts: Vec<&str> = self.texts().collect();
        match self.marks.is_empty() {
            true => texts.concat(),
            false => {
                let sections = self.marks.iter().zip(texts).map(|(mark, text)| format!("{mark}\n{text}"));
                sections.collect::<Vec<_>>().join("\n")
            }
        }
    }

    fn texts(&self) -> impl Iterator<Item = &str> {
        self.places.iter().filter_map(|place| self.args.pointer(place).and_then(Value::as_str))
    }

    /// The arguments with what the person made of the text; none if the lines between the edits are not
    /// as they were.
    pub fn replaced(&self, text: String) -> Option<Value> {
        let texts = if self.marks.is_empty() { vec![text] } else { self.sections(&text)? };
        let mut args = self.args.clone();
        for (place, text) in self.places.iter().zip(texts) {
            if let Some(part) = args.pointer_mut(place) {
                *part = Value::String(text);
            }
        }
        Some(args)
    }

    /// What stands below each mark.
    fn sections(&self, text: &str) -> Option<Vec<String>> {
        let lines: Vec<&str> = text.split('\n').collect();
        let mut starts = Vec::new();
        for mark in &self.marks {
            let from = starts.last().map_or(0, |last| last + 1);
            starts.push(from + lines.get(from..)?.iter().position(|line| line == mark)?);
        }
        let has_all_marks_once =
            lines.iter().filter(|line| self.marks.iter().any(|mark| mark == *line)).count()
                == self.marks.len();
        if !has_all_marks_once || lines[..starts[0]].iter().any(|line| !line.trim().is_empty()) {
            return None;
        }
        let ends = starts[1..].iter().copied().chain([lines.len()]);
        Some(starts.iter().zip(ends).map(|(start, end)| lines[start + 1..end].join("\n")).collect())
    }
}

/// A line for each edit that says what it replaces, and that is a line of none of the texts.
fn marks(edits: &[Value]) -> Vec<String> {
    let is_taken = |rule: &str| {
        edits.iter().any(|edit| edit["new_text"].as_str().is_some_and(|text| text.contains(rule)))
    };
    let mut rule = "=====".to_owned();
    while is_taken(&rule) {
        rule.push('=');
    }
    let mark = |(index, edit): (usize, &Value)| {
        let old = edit["old_text"].as_str().unwrap_or_default().trim().lines().next().unwrap_or_default();
        format!("{rule} edit {} of {}, in place of: {}", index + 1, edits.len(), old.trim_end())
    };
    edits.iter().enumerate().map(mark).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_text_of_a_call_can_be_changed() {
        let changed = |args: Value| EditablePart::of(&args).and_then(|part| part.replaced("new".into()));
        assert_eq!(
            changed(json!({"command": "ls", "timeout": 3})),
            Some(json!({"command": "new", "timeout": 3}))
        );
        let edit = json!({"path": "a", "edits": [{"old_text": "x", "new_text": "y"}]});
        let expected = json!({"path": "a", "edits": [{"old_text": "x", "new_text": "new"}]});
        assert_eq!(changed(edit), Some(expected));
        assert_eq!(changed(json!({"url": "x"})), None);
        assert_eq!(changed(json!({"edits": [{"new_text": "y"}, {"new_text": 3}]})), None);
    }

    #[test]
    fn several_edits_are_sections_of_one_text() {
        let args = json!({"edits": [
            {"old_text": "fn a() {}\nfn b() {}", "new_text": "fn a() -> u8 {\n}\n"},
            {"old_text": "x", "new_text": ""},
            {"old_text": "y", "new_text": "===== z"},
        ]});
        let part = EditablePart::of(&args).unwrap();
        let text = part.text();
        assert_eq!(
            text,
            "====== edit 1 of 3, in place of: fn a() {}\nfn a() -> u8 {\n}\n\n\
             ====== edit 2 of 3, in place of: x\n\n\
             ====== edit 3 of 3, in place of: y\n===== z"
        );
        assert_eq!(part.replaced(text.clone()), Some(args.clone()));
        let changed =
            part.replaced(text.replace("u8", "u16").replace("place of: x\n\n", "place of: x\n")).unwrap();
        assert_eq!(changed["edits"][0]["new_text"], "fn a() -> u16 {\n}\n");
        assert_eq!((&changed["edits"][1]["new_text"], &changed["edits"][2]), (&json!(""), &args["edits"][2]));
    }

    #[test]
    fn a_text_without_its_lines_between_the_edits_is_not_taken_for_one_of_them() {
        let args = json!({"edits": [{"old_text": "x", "new_text": "1"}, {"old_text": "y", "new_text": "2"}]});
        let part = EditablePart::of(&args).unwrap();
        let text = part.text();
        let second = "===== edit 2 of 2, in place of: y";
        for broken in [
            String::new(),
            "just this".to_owned(),
            text.replace(second, "===== edit 2"),
            format!("{text}\n{second}\n3"),
            format!("before\n{text}"),
        ] {
            assert_eq!(part.replaced(broken.clone()), None, "{broken}");
        }
    }
}
