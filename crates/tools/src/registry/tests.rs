use futures_util::future::BoxFuture;
use serde_json::Value;

use super::*;
use crate::{Effect, ToolInvocation, ToolOutcome};

/// A tool that does nothing.
struct NamedTool(Declaration);

impl Tool for NamedTool {
    fn declaration(&self) -> &Declaration {
        &self.0
    }
    fn effect(&self, _arguments: &Value) -> Effect {
        Effect::Reads
    }
    fn run<'a>(&'a self, _call: ToolInvocation<'a>) -> BoxFuture<'a, ToolOutcome> {
        Box::pin(std::future::ready(ToolOutcome::text("")))
    }
}

fn tool(name: &str, description: &str) -> Arc<dyn Tool> {
    let description = description.into();
    Arc::new(NamedTool(Declaration {
        name: name.into(),
        description,
        parameters: Default::default(),
        snippet: None,
        guidelines: Vec::new(),
    }))
}

/// Two sources: `built-in` with a and b, `mcp:x` with c.
fn registry() -> (ToolRegistry, ToolSource, ToolSource) {
    let (own, server) = (ToolSource::built_in(), ToolSource::named("mcp:x"));
    let registry = ToolRegistry::built_in([tool("a", "A\nand more"), tool("b", "B")]);
    registry.register(&server, tool("c", "C")).unwrap();
    (registry, own, server)
}

fn names(registry: &ToolRegistry) -> Vec<String> {
    registry.declarations().iter().map(|declaration| declaration.name.to_string()).collect()
}

#[test]
fn tools_are_listed_in_the_order_of_registration_with_source_and_state() {
    let (registry, own, server) = registry();
    registry.switch("b", ToolState::Off).unwrap();
    let listing = |name: &str, source: &ToolSource, state, summary: &str| ToolListing {
        name: name.into(),
        source: source.clone(),
        state,
        is_declared: state == ToolState::On,
        is_on_demand: false,
        summary: summary.into(),
    };
    assert_eq!(
        registry.list(),
        [
            listing("a", &own, ToolState::On, "A"),
            listing("b", &own, ToolState::Off, "B"),
            listing("c", &server, ToolState::On, "C"),
        ]
    );
    assert_eq!(names(&registry), ["a", "c"]);
}

#[test]
fn a_tool_that_comes_back_has_its_place_and_its_state_again() {
    let (registry, _, server) = registry();
    registry.register(&ToolSource::named("last"), tool("d", "D")).unwrap();
    registry.switch("c", ToolState::Off).unwrap();
    assert_eq!(registry.remove_source(&server), 1);
    assert_eq!((registry.remove_source(&server), registry.remove(&server, "c")), (0, false));
    registry.register(&server, tool("c", "C again")).unwrap();
    assert_eq!(names(&registry), ["a", "b", "d"]);
    assert_eq!(registry.switch("c", ToolState::On), Ok(true));
    assert_eq!(registry.switch("c", ToolState::On), Ok(false));
    assert_eq!(names(&registry), ["a", "b", "c", "d"]);
    assert_eq!(&*registry.declarations()[2].description, "C again");
}

#[test]
fn a_name_belongs_to_one_source_until_it_is_removed() {
    let (registry, own, server) = registry();
    let taken = registry.register(&server, tool("a", "")).unwrap_err();
    assert_eq!(taken, RegisterToolError::NameTaken { name: "a".into(), source_name: own.clone() });
    assert!(registry.remove(&own, "a"));
    registry.register(&server, tool("a", "A of the server")).unwrap();
    assert_eq!(names(&registry), ["a", "b", "c"]);
    assert_eq!(registry.list()[0].source, server);
}

#[test]
fn a_name_that_providers_refuse_is_refused() {
    let (registry, own, _) = registry();
    let long = "x".repeat(65);
    for name in ["", "a b", "ä", &long] {
        let refused = registry.register(&own, tool(name, "")).unwrap_err();
        assert_eq!(refused, RegisterToolError::InvalidName { name: name.into() });
    }
    registry.register(&own, tool(&long[1..], "")).unwrap();
}

#[test]
fn a_call_that_finds_no_tool_says_why() {
    let (registry, own, server) = registry();
    registry.switch("a", ToolState::Off).unwrap();
    registry.remove_source(&server);
    let find = |name: &str| registry.find(name).map(|tool| tool.declaration().name.to_string());
    assert_eq!(find("a"), Err(ToolUnavailable::SwitchedOff));
    assert_eq!(find("b"), Ok("b".into()));
    assert_eq!(find("c"), Err(ToolUnavailable::Removed));
    for name in ["context", "dynamic_panel"] {
        assert_eq!(find(name), Err(ToolUnavailable::FilledByLayout));
        let taken = registry.register(&own, tool(name, "")).unwrap_err();
        let source_name = ToolSource::named("layout");
        assert_eq!(taken, RegisterToolError::NameTaken { name: name.into(), source_name });
    }
    assert_eq!(find("d"), Err(ToolUnavailable::Unknown));
    assert!(registry.describe("a").is_some() && registry.describe("c").is_none());
    assert_eq!(names(&registry), ["b"]);
}

#[test]
fn only_a_registered_tool_can_be_switched_but_a_restored_switch_waits_for_its_tool() {
    let (registry, _, server) = registry();
    let unknown = registry.switch("d", ToolState::Off).unwrap_err();
    let known = ["a", "b", "c"].map(Arc::from).to_vec();
    assert_eq!(unknown, UnknownTool { name: "d".into(), known });
    registry.restore_switched_off(["d", "b"].map(Arc::from).into());
    registry.register(&server, tool("d", "")).unwrap();
    assert_eq!(names(&registry), ["a", "c"]);
    assert_eq!(registry.switched_off(), ["b", "d"].map(Arc::from).into());
}

#[test]
fn clones_are_the_same_registry() {
    let (registry, ..) = registry();
    registry.clone().switch("a", ToolState::Off).unwrap();
    assert_eq!(names(&registry), ["b", "c"]);
}

#[test]
fn the_tools_of_a_source_stand_in_one_place_whenever_they_come() {
    let (registry, _, server) = registry();
    registry.register(&ToolSource::named("extension"), tool("z", "")).unwrap();
    let names = || registry.list().into_iter().map(|tool| tool.name.to_string()).collect::<Vec<_>>();
    let first = ToolSource::named("mcp:a");
    assert_eq!(registry.replace_source(&first, vec![tool("a__1", ""), tool("a__2", "")]), []);
    assert_eq!(names(), ["a", "b", "a__1", "a__2", "c", "z"]);
    // Another list takes the same place; what is gone is told apart from what never was.
    assert_eq!(registry.replace_source(&first, vec![tool("a__0", ""), tool("a__2", "")]), []);
    assert_eq!(names(), ["a", "b", "a__0", "a__2", "c", "z"]);
    assert_eq!(registry.find("a__1").err(), Some(ToolUnavailable::Removed));
    let refused = registry.replace_source(&server, vec![tool("a", ""), tool("d", ""), tool("d", "")]);
    assert_eq!(
        (refused.len(), names()),
        (2, ["a", "b", "a__0", "a__2", "d", "z"].map(String::from).to_vec())
    );
}

#[test]
fn tools_that_another_one_calls_are_not_declared_while_it_is_on() {
    let (registry, _, server) = registry();
    let of_server = |registry: &ToolRegistry| -> Vec<(String, bool, bool)> {
        let listed = registry.list().into_iter().filter(|tool| tool.source == server);
        listed.map(|tool| (tool.name.to_string(), tool.is_declared, tool.is_on_demand)).collect()
    };
    let before = (names(&registry), of_server(&registry));
    let on_demand = OnDemandSources { sources: [server.clone()].into(), caller: Some("a".into()) };
    assert!(registry.set_on_demand(on_demand.clone()));
    assert!(!registry.set_on_demand(on_demand));
    assert!(of_server(&registry).iter().all(|(name, declared, on_demand)| {
        !declared && *on_demand && registry.find(name).is_ok() && !names(&registry).contains(name)
    }));
    assert!(!of_server(&registry).is_empty());
    // Without the tool that calls them they are declared, also in a copy.
    registry.switch("a", ToolState::Off).unwrap();
    let copy = registry.copy_with(|_, tool| tool.clone());
    assert_eq!(of_server(&copy), before.1);
    registry.switch("a", ToolState::On).unwrap();
    assert!(of_server(&registry.copy_with(|_, tool| tool.clone())).iter().all(|tool| tool.2));
    registry.set_on_demand(OnDemandSources::default());
    assert_eq!((names(&registry), of_server(&registry)), before);
}
