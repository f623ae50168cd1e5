//! What a capture of a query means. `queries/README.md` is the same list, in words.

use serde::{Deserialize, Serialize};

/// What sort of thing a definition is.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A class.
    Class,
    /// A struct or record.
    Struct,
    /// A trait or protocol.
    Trait,
    /// An interface.
    Interface,
    /// An enumeration.
    Enum,
    /// A union.
    Union,
    /// A type alias, or a named type without members.
    Type,
    /// A function.
    Function,
    /// A function of a type.
    Method,
    /// A macro.
    Macro,
    /// A field of a type.
    Field,
    /// A case of an enumeration.
    Variant,
    /// A computed property.
    Property,
    /// A named constant.
    Constant,
    /// A named value.
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

impl Kind {
    const ALL: [(Kind, &'static str); 19] = [
        (Kind::Class, "class"),
        (Kind::Struct, "struct"),
        (Kind::Trait, "trait"),
        (Kind::Interface, "interface"),
        (Kind::Enum, "enum"),
        (Kind::Union, "union"),
        (Kind::Type, "type"),
        (Kind::Function, "function"),
        (Kind::Method, "method"),
        (Kind::Macro, "macro"),
        (Kind::Field, "field"),
        (Kind::Variant, "variant"),
        (Kind::Property, "property"),
        (Kind::Constant, "constant"),
        (Kind::Variable, "variable"),
        (Kind::Module, "module"),
        (Kind::Heading, "heading"),
        (Kind::Key, "key"),
        // Captured as a scope; whether it extends a type of another file is known only in the end.
        (Kind::Extension, "scope"),
    ];

    /// Its letter in the map.
    pub fn letter(self) -> &'static str {
        match self {
            Kind::Class | Kind::Struct | Kind::Trait | Kind::Interface | Kind::Enum | Kind::Union => "c",
            Kind::Extension => "c+",
            Kind::Type => "t",
            Kind::Function | Kind::Macro => "f",
            Kind::Method => "m",
            Kind::Field | Kind::Variant | Kind::Constant | Kind::Variable => "v",
            Kind::Property => "p",
            Kind::Module => "n",
            Kind::Heading => "h",
            Kind::Key => "k",
        }
    }

    /// Whether it is a function of some sort, whose insides are its own business.
    pub fn is_callable(self) -> bool {
        matches!(self, Kind::Function | Kind::Method | Kind::Macro)
    }

    /// Whether functions inside it are its methods.
    pub(crate) fn has_members(self) -> bool {
        !self.is_callable() && !matches!(self, Kind::Module | Kind::Heading | Kind::Key | Kind::Property)
    }

    /// Whether a use of its name may lead to it. Names of fields and cases are too common to say anything.
    pub(crate) fn links(self) -> bool {
        !matches!(self, Kind::Field | Kind::Variant | Kind::Heading | Kind::Key | Kind::Extension)
    }

    /// Its number on disk.
    pub(crate) fn code(self) -> u8 {
        self as u8
    }

    pub(crate) fn from_code(code: u8) -> Option<Kind> {
        Kind::ALL.get(usize::from(code)).map(|(kind, _)| *kind)
    }
}

/// What a capture says about the node that it stands on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Capture {
    Definition(Kind),
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
    /// For the predicates of its own pattern alone, by number.
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
    pub(crate) fn named(name: &str) -> Option<Capture> {
        if let Some((kind, _)) = Kind::ALL.iter().find(|(_, known)| *known == name) {
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
        for (code, (kind, _)) in Kind::ALL.iter().enumerate() {
            assert_eq!(usize::from(kind.code()), code);
            assert_eq!(Kind::from_code(kind.code()), Some(*kind));
        }
        assert_eq!(Kind::from_code(19), None);
    }
}
