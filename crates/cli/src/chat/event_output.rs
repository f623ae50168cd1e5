//! [`EventOutput`]: the agent's events on standard output, as text, as JSON lines, or in another agent's form.

use std::sync::{Arc, Mutex, PoisonError};

use super::display::EventPrinter;
use crate::event_reader::EventReader;
use crate::output::{self, OutputError};
use crate::script_output::{ChatOutput, ScriptEnd, ScriptPrinter};
use hardpan_app::ConversationApp;

/// Prints an agent's events in the format of `--output`.
pub enum EventOutput {
    Text(EventPrinter),
    Json(JsonPrinter),
    Script(ScriptPrinter),
}

impl EventOutput {
    /// Starts printing. With `live`, text is printed as it streams.
    pub fn start(app: &Arc<ConversationApp>, format: ChatOutput, live: bool) -> Self {
        match (ScriptPrinter::start(app, format), format) {
            (Some(printer), _) => EventOutput::Script(printer),
            (None, ChatOutput::Json) => EventOutput::Json(JsonPrinter::start(app)),
            (None, _) => EventOutput::Text(EventPrinter::start(app, live)),
        }
    }

    /// Waits until the last event is printed, once the agent is shut down, with how everything ended.
    /// Fails if something could not be written.
    pub async fn finish(self, end: &ScriptEnd) -> Result<(), OutputError> {
        match self {
            EventOutput::Text(printer) => printer.finish().await,
            EventOutput::Json(printer) => printer.finish().await,
            EventOutput::Script(printer) => printer.finish(end).await,
        }
    }
}

/// Prints each event as one line of JSON.
pub struct JsonPrinter {
    reader: EventReader,
    /// The first failed write. The run goes on, since the session stores its result.
    write_error: Arc<Mutex<Option<OutputError>>>,
}

impl JsonPrinter {
    fn start(app: &ConversationApp) -> Self {
        let write_error: Arc<Mutex<Option<OutputError>>> = Arc::default();
        let failed = write_error.clone();
        let reader = EventReader::start(&app.agent, move |event| {
            // Cannot fail: all keys are strings.
            let Ok(line) = serde_json::to_string(&event) else { return };
            if let Err(error) = output::print_json_line(line) {
                failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            }
        });
        JsonPrinter { reader, write_error }
    }

    async fn finish(self) -> Result<(), OutputError> {
        self.reader.finish().await;
        let failed = self.write_error.lock().unwrap_or_else(PoisonError::into_inner).take();
        failed.map_or(Ok(()), Err)
    }
}
