//! `hardpan.d.ts`, made of the types that go to extensions and of what is written in JavaScript.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value};

use super::super::api::{self, EVENTS, EventTyping};
use super::typescript::TypePrinter;

/// What `pi`, `ctx` and the modules offer, with marks where the types that are made of Rust come.
const TEMPLATE: &str = include_str!("template.d.ts");

const HEADER_MARK: &str = "/* HEADER */\n";
const TYPES_MARK: &str = "/* TYPES */\n";
const EVENTS_MARK: &str = "/* EVENTS */\n";
const HANDLERS_MARK: &str = "/* HANDLERS */\n";

const HEADER: &str = "\
// The API of Hardpan's extensions: what `pi`, `ctx` and the modules offer. `hardpan extensions new` writes this file;
// it is there for your editor and for `tsc`, and is never loaded.
";

/// Types that the template names and no event has.
fn add_other_types(generator: &mut SchemaGenerator) {
    fn add<T: JsonSchema>(generator: &mut SchemaGenerator) {
        generator.subschema_for::<T>();
    }
    add::<api::ToolInfo>(generator);
    add::<api::CommandInfo>(generator);
    add::<api::ContextUsage>(generator);
    add::<api::NewMessage>(generator);
}

fn definitions(mut generator: SchemaGenerator) -> Map<String, Value> {
    generator.take_definitions(true).into_iter().collect()
}

/// The declarations of the whole API: `hardpan.d.ts`.
pub fn declarations() -> String {
    let mut given = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let mut returned = SchemaSettings::draft2020_12().for_deserialize().into_generator();
    let mut printer = TypePrinter::default();
    let (mut events, mut handlers) = (String::new(), String::new());
    for EventTyping { name, payload, reply } in EVENTS {
        let event = printer.type_of(payload(&mut given).as_value());
        let reply =
            reply.map_or_else(|| "void".to_owned(), |reply| printer.type_of(reply(&mut returned).as_value()));
        events.push_str(&format!("    {name}: {{ event: {event}; reply: {reply} }};\n"));
        // One signature for each event: the compiler then knows the literals of a reply.
        handlers.push_str(&format!("    on(event: \"{name}\", handler: Handler<\"{name}\">): () => void;\n"));
    }
    add_other_types(&mut given);
    // A message that goes both ways is declared as handlers get it.
    printer.declare(&definitions(given));
    printer.declare(&definitions(returned));
    TEMPLATE
        .replace(HEADER_MARK, HEADER)
        .replace(TYPES_MARK, &printer.into_text("  "))
        .replace(EVENTS_MARK, &events)
        .replace(HANDLERS_MARK, &handlers)
}

impl EventTyping {
    /// The names of the fields that its payload may hold, `type` aside.
    pub fn field_names(&self) -> Vec<String> {
        let settings = SchemaSettings::draft2020_12().for_serialize();
        let mut generator = settings.with(|settings| settings.inline_subschemas = true).into_generator();
        let schema = (self.payload)(&mut generator);
        schema.as_value()["properties"].as_object().into_iter().flat_map(Map::keys).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes the file anew with `HARDPAN_UPDATE_DOCS=1`.
    #[test]
    fn the_declarations_in_the_tree_are_those_of_the_types() {
        let text = declarations();
        if std::env::var_os("HARDPAN_UPDATE_DOCS").is_some() {
            let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/extensions/typings/hardpan.d.ts");
            std::fs::write(path, &text).unwrap();
            return;
        }
        let stored = super::super::DECLARATIONS;
        assert!(
            stored == text,
            "hardpan.d.ts is not what the types say: \
             HARDPAN_UPDATE_DOCS=1 cargo test -p hardpan-app --lib declarations"
        );
    }

    #[test]
    fn every_event_has_its_declaration_once() {
        let text = declarations();
        assert!(!text.contains("/* "), "a mark stays");
        for event in EVENTS {
            assert_eq!(text.matches(&format!("    {}: {{ event:", event.name)).count(), 1, "{}", event.name);
        }
    }

    #[test]
    fn the_fields_of_an_event_are_those_that_handlers_see() {
        let fields = |name: &str| {
            EVENTS.iter().find(|event| event.name == name).map(EventTyping::field_names).unwrap()
        };
        assert_eq!(fields("session_compact"), ["compactionEntry", "fromExtension", "reason", "willRetry"]);
        assert_eq!(fields("session_start"), ["reason", "previousSessionFile"]);
        assert_eq!(fields("context"), ["messages"]);
        assert_eq!(fields("session_before_tree"), ["preparation", "signal"]);
    }
}
