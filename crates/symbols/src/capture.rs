//! [`SymbolKind`] and [`Capture`]: what the captures of a query mean. `queries/README.md` has the
//! same list for people who write queries.

use serde::{Deserialize, Serialize};

/// The kind of a definition, common to all languages.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[serde(rename_all = "lowercase")]
pub enum SymbolKind {
    /// A class of an object-oriented language.
    Class,
    /// A struct or record.
    Struct,
    /// A trait or protocol.
    Trait,
    /// An interface declaration (TypeScript, Java, Go, …).
    Interface,
    /// An enumeration, with or without data in its cases.
    Enum,
    /// A C-like union.
    Union,
    /// A type alias, or a named type without members.
    Type,
    /// A free function.
    Function,
    /// A function that belongs to a type.
    Method,
    /// A macro definition.
    Macro,
    /// A field of a type.
    Field,
    /// One case of an enumeration.
    Variant,
    /// A property with a getter or setter.
    Property,
    /// A constant at the top level of a file or module.
    Constant,
    /// A variable at the top level of a file or module.
    Variable,
    /// A namespace or inline module.
    Module,
    /// A heading of a document.
    Heading,
    /// A key of a data file.
    Key,
    /// More members of a type that is defined elsewhere.
    Extension,
}

impl SymbolKind {
    const ALL: [(SymbolKind, &'static str); 19] = [
        (SymbolKind::Class, "class"),
        (SymbolKind::Struct, "struct"),
        (SymbolKind::Trait, "trait"),
        (SymbolKind::Interface, "interface"),
        (SymbolKind::Enum, "enum"),
        (SymbolKind::Union, "union"),
        (SymbolKind::Type, "type"),
        (SymbolKind::Function, "function"),
        (SymbolKind::Method, "method"),
        (SymbolKind::Macro, "macro"),
        (SymbolKind::Field, "field"),
        (SymbolKind::Variant, "variant"),
        (SymbolKind::Property, "property"),
        (SymbolKind::Constant, "constant"),
        (SymbolKind::Variable, "variable"),
        (SymbolKind::Module, "module"),
        (SymbolKind::Heading, "heading"),
        (SymbolKind::Key, "key"),
        // Captured as a scope; whether it extends a type of another file is known only at the end.
        (SymbolKind::Extension, "scope"),
    ];

    /// The letter that stands for it in the map; the legend explains them.
    pub fn letter(self) -> &'static str {
        match self {
            SymbolKind::Class
            | SymbolKind::Struct
            | SymbolKind::Trait
            | SymbolKind::Interface
            | SymbolKind::Enum
            | SymbolKind::Union => "c",
            SymbolKind::Extension => "c+",
            SymbolKind::Type => "t",
            SymbolKind::Function | SymbolKind::Macro => "f",
            SymbolKind::Method => "m",
            SymbolKind::Field | SymbolKind::Variant | SymbolKind::Constant | SymbolKind::Variable => "v",
            SymbolKind::Property => "p",
            SymbolKind::Module => "n",
            SymbolKind::Heading => "h",
            SymbolKind::Key => "k",
        }
    }

    /// The kind in a word: `class`, `function`.
    pub fn as_str(self) -> &'static str {
        SymbolKind::ALL.iter().find(|(kind, _)| *kind == self).map_or("", |(_, name)| name)
    }

    /// Whether it is a function, method or macro: definitions inside it are local.
    pub fn is_callable(self) -> bool {
        matches!(self, SymbolKind::Function | SymbolKind::Method | SymbolKind::Macro)
    }

    /// Whether functions inside it are methods of it.
    pub(crate) fn has_members(self) -> bool {
        !self.is_callable()
            && !matches!(
                self,
                SymbolKind::Module | SymbolKind::Heading | SymbolKind::Key | SymbolKind::Property
            )
    }

    /// Whether a use of its name counts as a reference to it. Names of fields and cases are too
    /// common to tell anything.
    pub(crate) fn is_linkable(self) -> bool {
        !matches!(
            self,
            SymbolKind::Field
                | SymbolKind::Variant
                | SymbolKind::Heading
                | SymbolKind::Key
                | SymbolKind::Extension
        )
    }

    /// Its number in the cache file.
    pub(crate) fn code(self) -> u8 {
        self as u8
    }

    pub(crate) fn from_code(code: u8) -> Option<SymbolKind> {
        SymbolKind::ALL.get(usize::from(code)).map(|(kind, _)| *kind)
    }
}

/// What a capture says about the node it is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Capture {
    Definition(SymbolKind),
    Name,
    Params,
    Param(ParamForm),
    Returns,
    Async,
    Base,
    Parent,
    Call,
    Test,
    Text,
    Import,
    ImportName,
    ImportPublic,
    Submodule,
    /// A capture that only the predicates of its own pattern use, by number.
    Private(u8),
}

/// How a parameter is shown. Where one is captured twice, the greater form counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ParamForm {
    Plain,
    Rest,
    Optional,
}

impl Capture {
    pub(crate) fn from_name(name: &str) -> Option<Capture> {
        if let Some((kind, _)) = SymbolKind::ALL.iter().find(|(_, known)| *known == name) {
            return Some(Capture::Definition(*kind));
        }
        Some(match name {
            "name" => Capture::Name,
            "params" => Capture::Params,
            "param" => Capture::Param(ParamForm::Plain),
            "param.rest" => Capture::Param(ParamForm::Rest),
            "param.optional" => Capture::Param(ParamForm::Optional),
            "returns" => Capture::Returns,
            "async" => Capture::Async,
            "base" => Capture::Base,
            "parent" => Capture::Parent,
            "call" => Capture::Call,
            "test" => Capture::Test,
            "text" => Capture::Text,
            "import" => Capture::Import,
            "import.name" => Capture::ImportName,
            "import.public" => Capture::ImportPublic,
            "import.submodule" => Capture::Submodule,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_on_disk_is_the_place_in_the_list() {
        for (code, (kind, _)) in SymbolKind::ALL.iter().enumerate() {
            assert_eq!(usize::from(kind.code()), code);
            assert_eq!(SymbolKind::from_code(kind.code()), Some(*kind));
        }
        assert_eq!(SymbolKind::from_code(19), None);
    }
}
