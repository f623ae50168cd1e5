//! [`LayoutName`]: the layouts by name. This is the only place that knows which there are.

use std::fmt;
use std::str::FromStr;

use hardpan_models::{did_you_mean, nearest};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::Layout;

/// Makes [`LayoutName`] from one line per layout: its name in the code, its name in settings and
/// sessions, and its implementation.
macro_rules! layouts {
    ($($(#[$attribute:meta])* $name:ident = $text:literal => $layout:expr,)+) => {
        /// The name of a layout, as settings, sessions and `--layout` spell it.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
        pub enum LayoutName {
            $($(#[$attribute])* #[serde(rename = $text)] $name,)+
        }

        impl LayoutName {
            /// Every layout, the default first.
            pub const ALL: [LayoutName; [$($text),+].len()] = [$(LayoutName::$name),+];

            /// The implementation registered under this name.
            pub fn layout(self) -> &'static dyn Layout {
                match self {
                    $(LayoutName::$name => &$layout,)+
                }
            }

            /// The name as settings spell it: `strata`.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(LayoutName::$name => $text,)+
                }
            }
        }
    };
}

layouts! {
    /// The default: a log-structured prompt of BASE, LOG and TAIL.
    #[default]
    Strata = "strata" => crate::strata::Strata,
    /// Every item as a tool call and its result, the oldest change first.
    Panels = "panels" => crate::panels::Panels,
    /// Stability tiers, with a breakpoint after each.
    Tiers = "tiers" => crate::tiers::Tiers,
    /// All context right before the last user message.
    Inline = "inline" => crate::inline::Inline,
}

impl LayoutName {
    /// The layout for a request that stands alone, such as one for a summary.
    pub fn for_single_request() -> LayoutName {
        let suits = |name: &LayoutName| name.layout().suits_single_requests();
        LayoutName::ALL.into_iter().find(suits).unwrap_or_default()
    }
}

impl fmt::Display for LayoutName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A layout name that nothing is registered under.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unknown layout \"{name}\"{}; use {}", did_you_mean(nearest), known_names())]
pub struct UnknownLayout {
    /// The name that was given.
    pub name: String,
    /// Known names that look similar, the nearest first.
    pub nearest: Vec<String>,
}

/// The names as a list: `a, b or c`.
fn known_names() -> String {
    let names = LayoutName::ALL.map(LayoutName::as_str);
    names.split_last().map_or_else(String::new, |(last, rest)| format!("{} or {last}", rest.join(", ")))
}

impl FromStr for LayoutName {
    type Err = UnknownLayout;
    fn from_str(name: &str) -> Result<Self, Self::Err> {
        LayoutName::ALL.into_iter().find(|layout| layout.as_str() == name).ok_or_else(|| {
            let known = LayoutName::ALL.iter().map(|layout| layout.as_str());
            UnknownLayout { name: name.to_owned(), nearest: nearest(name, known) }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_spelled_alike_in_settings_and_in_json() {
        for name in LayoutName::ALL {
            assert_eq!(serde_json::to_value(name).unwrap(), name.as_str());
            assert_eq!(name.as_str().parse(), Ok(name));
        }
        let unknown = "strate".parse::<LayoutName>().unwrap_err().to_string();
        assert!(unknown.ends_with("; use strata, panels, tiers or inline"), "{unknown}");
    }

    #[test]
    fn a_request_that_stands_alone_has_a_layout_without_tools_of_its_own() {
        assert_eq!(LayoutName::for_single_request(), LayoutName::Inline);
        assert_eq!(LayoutName::for_single_request().layout().own_tool(), None);
    }

    #[test]
    fn no_two_layouts_have_the_same_tool_or_the_same_call_ids() {
        let own = |one: fn(&dyn Layout) -> Option<&'static str>| {
            LayoutName::ALL.into_iter().filter_map(move |name| one(name.layout())).collect::<Vec<_>>()
        };
        assert_eq!(own(|layout| layout.own_tool()), ["context", "dynamic_panel"]);
        assert_eq!(own(|layout| layout.own_call_prefix()), ["context_", "panel_"]);
    }
}
