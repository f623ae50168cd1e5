//! Memory over many turns: what an agent keeps must be the conversation's, and nothing else.
//!
//! `cargo bench -p hardpan-agent --bench flat` takes one agent through 2,000 turns,
//! `HARDPAN_TURNS=10000` through more. Every 50 turns it begins a new conversation, so that the
//! conversation itself stays small; a file changes with every prompt, so that what is remembered of
//! texts and counts must be forgotten again. The resident memory at the end may be an eighth more
//! than after the first tenth, by when everything has happened often. Over that, the run fails with
//! `HARDPAN_BENCH=strict`.

use std::path::PathBuf;

use hardpan_agent::{Conversation, SessionSwitchKind};
use hardpan_context::LayoutName;
use hardpan_prompt::Volatility;
use hardpan_test_support::{InstantProvider, TestAgent, TestClock, Toolset, code, header};

/// Turns of one prompt: nine call a tool, the last one answers.
const TURNS_OF_A_PROMPT: usize = 10;
const PROMPTS_OF_A_CONVERSATION: usize = 5;
const LIMIT: f64 = 1.125;

/// The memory of this process that is really there, in megabytes; none where the system does not
/// say.
fn resident() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<f64>().ok()? / 1024.0)
}

fn file(n: usize) -> String {
    format!("file:src/part_{n}.rs")
}

#[tokio::main]
async fn main() {
    let turns: usize = std::env::var("HARDPAN_TURNS").map_or(2000, |turns| turns.parse().expect("a number"));
    let mut over = false;
    for layout in LayoutName::ALL {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: usize| -> PathBuf { folder.path().join(format!("c{name}.jsonl")) };
        let begin = |name: usize| {
            Conversation::begin(&path(name), header(&format!("c{name}"))).expect("a conversation")
        };
        let provider = InstantProvider::new(TURNS_OF_A_PROMPT);
        let builder =
            TestAgent::in_process().transport(provider).without_recording().tools(Toolset::ReadAndLook);
        let builder = builder.layout(layout).clock(TestClock::Running).volatility(Volatility::Slow);
        let builder = (0..10).fold(builder, |builder, n| builder.item(&file(n), &code(n, 20)));
        let test_agent = builder.start().await;
        let agent = &test_agent.agent;
        agent.switch_session(begin(0), SessionSwitchKind::New).await;
        let prompts = turns.div_ceil(TURNS_OF_A_PROMPT);
        let mut samples: Vec<f64> = Vec::new();
        for prompt in 1..=prompts {
            if prompt % PROMPTS_OF_A_CONVERSATION == 0 {
                let old = agent.session().1;
                agent.switch_session(begin(prompt), SessionSwitchKind::New).await;
                std::fs::remove_file(old).expect("the session is there");
            }
            test_agent.set_item(&file(10), &code(prompt, 40));
            test_agent.say(&format!("Question {prompt}: what has changed?")).await;
            if [prompts.div_ceil(10), prompts.div_ceil(2), prompts].contains(&prompt) {
                samples.extend(resident());
            }
        }
        agent.shutdown().await.expect("all is stored");
        let [early, half, end] = samples[..] else {
            println!("memory {layout:6}: this system does not say how much is used");
            continue;
        };
        over |= end > early * LIMIT;
        println!(
            "memory {layout:6} over {turns} turns: {early:.1} MB at a tenth, {half:.1} MB at half, {end:.1} MB at the end: {:.2} (limit {LIMIT})",
            end / early,
        );
    }
    let strict = std::env::var("HARDPAN_BENCH").is_ok_and(|value| value == "strict");
    assert!(!(over && strict), "memory grows");
}
