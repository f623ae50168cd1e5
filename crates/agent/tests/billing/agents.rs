//! The conversations that most tests begin with.

use hardpan_context::LayoutName;
use hardpan_test_support::{TestAgent, TestAgentBuilder, numbered_lines};

pub fn two_files(layout: LayoutName) -> TestAgentBuilder {
    let [alpha, beta] = ["alpha", "beta"].map(|word| numbered_lines(word, 400));
    TestAgent::in_process().layout(layout).item("file:a.rs", &alpha).item("file:b.rs", &beta)
}

/// An agent with two long files.
pub async fn with_files(layout: LayoutName) -> TestAgent {
    two_files(layout).start().await
}

/// An agent in which nothing changes by itself as long as no time passes: all layouts but the
/// default put the time in the cached part. It has been told a long story.
pub async fn steady(layout: LayoutName) -> TestAgent {
    let builder = match layout {
        LayoutName::Strata => two_files(layout),
        // After the panels it tells which messages there are.
        LayoutName::Panels => TestAgent::in_process().layout(layout),
        // Files are not cached before they have been seen a few times; the map is.
        LayoutName::Tiers => ["x", "y", "z"].iter().fold(two_files(layout), |builder, name| {
            builder.item(&format!("symbols:{name}.rs"), &numbered_lines(name, 300))
        }),
        // It sets no breakpoints.
        LayoutName::Inline => TestAgent::in_process().layout(layout).model("gpt-5.2"),
    };
    let test_agent = builder.start().await;
    test_agent.say(&numbered_lines("A long story", 300)).await;
    test_agent
}
