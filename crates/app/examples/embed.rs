//! Embeds the agent in a program: opens a conversation about the current folder, sends a prompt to
//! the built-in simulator, and prints the events.
//!
//! ```sh
//! cargo run -p hardpan-app --example embed -- "What is in README.md? @README.md"
//! ```

use std::sync::Arc;

use hardpan_agent::{Input, InputSource};
use hardpan_app::mentions::PromptSource;
use hardpan_app::options::{OpenOptions, ProviderAccess, SessionStorage};
use hardpan_app::{ConversationApp, FaceHooks, Notice, NoticeSink};

/// Shows what the library has to say.
struct PrintNotices;

impl NoticeSink for PrintNotices {
    fn notice(&self, notice: Notice) {
        eprintln!("notice: {notice}");
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let text = std::env::args().nth(1).unwrap_or_else(|| "What does this project do?".into());
    let options = OpenOptions {
        access: ProviderAccess::Simulator,
        storage: SessionStorage::Temporary,
        ..OpenOptions::new(".")
    };
    let app =
        ConversationApp::open(&options, &FaceHooks { prompter: None, notices: Arc::new(PrintNotices) })?;
    let mut events = app.agent.events().stream();
    let printing = tokio::spawn(async move {
        while let Some(event) = events.recv().await {
            println!("{}", serde_json::to_string(&event).unwrap_or_default());
        }
    });
    app.agent.start().await;
    let attachments = app.attach_mentions(&text, PromptSource::Typed);
    attachments.notes.iter().for_each(|note| eprintln!("{note}"));
    let images = attachments.images;
    app.agent.prompt(Input { text, below: None, images, source: InputSource::Interactive, id: None }).await?;
    app.save_state().await;
    app.agent.shutdown().await?;
    drop(app);
    Ok(printing.await?)
}
