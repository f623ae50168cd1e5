//! The table of languages. To add one, add a row to [`ALL`].

/// What the lexer has to know about a language.
#[derive(Debug)]
pub(super) struct Language {
    /// What fences and the ends of file names call it, in lower case.
    pub names: &'static [&'static str],
    /// What begins a comment up to the end of the line.
    pub line_comments: &'static [&'static str],
    /// What begins and ends a comment of several lines.
    pub block_comments: &'static [(&'static str, &'static str)],
    /// Strings; of two that begin alike, the longer is first.
    pub strings: &'static [StringRule],
    /// `'x'` is a character, and a quote alone is not.
    pub has_char_literals: bool,
    /// Words, separated by spaces.
    pub keywords: &'static str,
    /// Words with a fixed value, separated by spaces.
    pub constants: &'static str,
    /// Of `$` and `@`, those that begin a variable or an attribute.
    pub sigils: &'static str,
    /// Words are compared in lower case.
    pub ignores_case: bool,
    /// What is special about it.
    pub form: Form,
}

/// A kind of string.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct StringRule {
    pub open: &'static str,
    pub close: &'static str,
    /// A backslash takes the next character's meaning away.
    pub has_escapes: bool,
    /// It may go on in the next line.
    pub is_multiline: bool,
}

/// How a language differs from words, strings and comments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Code,
    /// Lines that begin with `#` are for the preprocessor.
    Preprocessor,
    Json,
    Yaml,
    /// Sections, and keys before `=`.
    Ini,
    /// Words with `-`, and keys before `:`.
    Css,
    Markup,
    Diff,
}

const fn string(open: &'static str, close: &'static str) -> StringRule {
    StringRule { open, close, has_escapes: true, is_multiline: false }
}

const fn long(open: &'static str, close: &'static str) -> StringRule {
    StringRule { open, close, has_escapes: true, is_multiline: true }
}

const fn raw(open: &'static str, close: &'static str) -> StringRule {
    StringRule { open, close, has_escapes: false, is_multiline: true }
}

const QUOTES: &[StringRule] = &[string("\"", "\""), string("'", "'")];
const LONG_QUOTES: &[StringRule] = &[long("\"", "\""), raw("'", "'")];
const PYTHON: &[StringRule] =
    &[long("\"\"\"", "\"\"\""), long("'''", "'''"), string("\"", "\""), string("'", "'")];
const SCRIPT: &[StringRule] = &[string("\"", "\""), string("'", "'"), long("`", "`")];
const RUST: &[StringRule] = &[
    raw("r##\"", "\"##"),
    raw("r#\"", "\"#"),
    raw("br#\"", "\"#"),
    raw("r\"", "\""),
    long("b\"", "\""),
    long("\"", "\""),
];

const BASE: Language = Language {
    names: &[],
    line_comments: &["//"],
    block_comments: &[("/*", "*/")],
    strings: QUOTES,
    has_char_literals: false,
    keywords: "",
    constants: "true false null",
    sigils: "",
    ignores_case: false,
    form: Form::Code,
};

const HASH: Language = Language { line_comments: &["#"], block_comments: &[], ..BASE };

const ECMA: &str = "abstract as async await break case catch class const constructor continue debugger declare default delete do else enum export extends finally for from function get if implements import in infer instanceof interface keyof let namespace new of package private protected public readonly return satisfies set static super switch this throw try type typeof var void while with yield any boolean never number object string symbol unknown";

pub(super) const ALL: &[Language] = &[
    Language {
        names: &["rust", "rs"],
        strings: RUST,
        has_char_literals: true,
        keywords: "as async await break const continue crate dyn else enum extern fn for if impl in let loop match mod move mut pub ref return self Self static struct super trait type union unsafe use where while bool char f32 f64 i8 i16 i32 i64 i128 isize str u8 u16 u32 u64 u128 usize",
        constants: "true false None Some Ok Err",
        ..BASE
    },
    Language {
        names: &["python", "py", "python3", "pyi", "pycon"],
        strings: PYTHON,
        keywords: "and as assert async await break case class continue def del elif else except finally for from global if import in is lambda match nonlocal not or pass raise return self try while with yield",
        constants: "True False None",
        sigils: "@",
        ..HASH
    },
    Language {
        names: &["javascript", "js", "jsx", "mjs", "cjs", "node"],
        strings: SCRIPT,
        keywords: ECMA,
        constants: "true false null undefined NaN Infinity",
        sigils: "@",
        ..BASE
    },
    Language {
        names: &["typescript", "ts", "tsx", "mts", "cts"],
        strings: SCRIPT,
        keywords: ECMA,
        constants: "true false null undefined NaN Infinity",
        sigils: "@",
        ..BASE
    },
    Language {
        names: &["go", "golang"],
        strings: &[string("\"", "\""), string("'", "'"), raw("`", "`")],
        keywords: "break case chan const continue default defer else fallthrough for func go goto if import interface map package range return select struct switch type var any bool byte error float32 float64 int int8 int16 int32 int64 rune string uint uint8 uint16 uint32 uint64 uintptr",
        constants: "true false nil iota",
        ..BASE
    },
    Language {
        names: &["c", "h"],
        keywords: "auto break case char const continue default do double else enum extern float for goto if inline int long register restrict return short signed sizeof static struct switch typedef union unsigned void volatile while bool size_t",
        constants: "true false NULL",
        form: Form::Preprocessor,
        ..BASE
    },
    Language {
        names: &["cpp", "c++", "cc", "cxx", "hpp", "hh", "hxx", "cuda", "cu"],
        strings: &[raw("R\"(", ")\""), string("\"", "\""), string("'", "'")],
        keywords: "alignas alignof and auto bool break case catch char class co_await co_return co_yield concept const consteval constexpr constinit const_cast continue decltype default delete do double dynamic_cast else enum explicit export extern final float for friend goto if inline int long mutable namespace new noexcept not operator or override private protected public register reinterpret_cast requires return short signed sizeof static static_assert static_cast struct switch template this throw try typedef typename union unsigned using virtual void volatile while",
        constants: "true false nullptr NULL",
        form: Form::Preprocessor,
        ..BASE
    },
    Language {
        names: &["java"],
        strings: &[long("\"\"\"", "\"\"\""), string("\"", "\""), string("'", "'")],
        keywords: "abstract assert boolean break byte case catch char class const continue default do double else enum extends final finally float for goto if implements import instanceof int interface long native new non-sealed package permits private protected public record return sealed short static strictfp super switch synchronized this throw throws transient try var void volatile while yield",
        sigils: "@",
        ..BASE
    },
    Language {
        names: &["csharp", "cs", "c#"],
        strings: &[raw("@\"", "\""), string("\"", "\""), string("'", "'")],
        keywords: "abstract as async await base bool break byte case catch char checked class const continue decimal default delegate do double else enum event explicit extern finally fixed float for foreach get goto if implicit in init int interface internal is lock long namespace new object operator out override params private protected public readonly record ref return sbyte sealed set short sizeof stackalloc static string struct switch this throw try typeof uint ulong unchecked unsafe ushort using var virtual void volatile when where while yield",
        form: Form::Preprocessor,
        ..BASE
    },
    Language {
        names: &["kotlin", "kt", "kts"],
        strings: &[raw("\"\"\"", "\"\"\""), string("\"", "\""), string("'", "'")],
        keywords: "abstract actual as break by catch class companion const constructor continue data do else enum expect external final finally for fun get if import in infix init inline inner interface internal is lateinit object open operator out override package private protected public reified return sealed set super suspend this throw try typealias val var vararg when where while",
        sigils: "@",
        ..BASE
    },
    Language {
        names: &["swift"],
        strings: &[long("\"\"\"", "\"\"\""), string("\"", "\"")],
        keywords: "actor any as associatedtype async await break case catch class continue convenience default defer deinit do else enum extension fallthrough fileprivate final for func get guard if import in indirect infix init inout internal is lazy let mutating nonisolated open operator override private protocol public repeat required rethrows return self Self set some static struct subscript super switch throw throws try typealias unowned var weak where while",
        constants: "true false nil",
        sigils: "@",
        ..BASE
    },
    Language {
        names: &["scala", "sbt", "sc"],
        strings: &[raw("\"\"\"", "\"\"\""), string("\"", "\"")],
        has_char_literals: true,
        keywords: "abstract case catch class def do else enum extends extension final finally for given if implicit import lazy match new object override package private protected return sealed super then this throw trait try type using val var while with yield",
        sigils: "@",
        ..BASE
    },
    Language {
        names: &["dart"],
        strings: PYTHON,
        keywords: "abstract as assert async await base break case catch class const continue covariant default do dynamic else enum export extends extension external factory final finally for get if implements import in interface is late library mixin new on operator part required rethrow return sealed set static super switch sync this throw try typedef var void when while with yield",
        sigils: "@",
        ..BASE
    },
    Language {
        names: &["php"],
        strings: LONG_QUOTES,
        line_comments: &["//", "#"],
        keywords: "abstract and array as break callable case catch class clone const continue declare default do echo else elseif empty enum extends final finally fn for foreach function global goto if implements include include_once instanceof insteadof interface isset list match namespace new or print private protected public readonly require require_once return static switch throw trait try unset use var while xor yield",
        sigils: "$",
        ..BASE
    },
    Language {
        names: &["zig"],
        strings: &[string("\"", "\""), string("'", "'")],
        keywords: "addrspace align allowzero and anyframe anytype asm async await break catch comptime const continue defer else enum errdefer error export extern fn for if inline linksection noalias noinline nosuspend opaque or orelse packed pub resume return struct suspend switch test threadlocal try union unreachable usingnamespace var volatile while bool f32 f64 i32 i64 u8 u16 u32 u64 usize void",
        constants: "true false null undefined",
        sigils: "@",
        ..BASE
    },
    Language {
        names: &["ruby", "rb", "rake", "gemfile"],
        strings: LONG_QUOTES,
        keywords: "alias and begin break case class def defined? do else elsif end ensure extend for if in include module next not or private protected public raise redo require require_relative rescue retry return self super then undef unless until when while yield attr_accessor attr_reader",
        constants: "true false nil",
        sigils: "@$",
        ..HASH
    },
    Language {
        names: &["bash", "sh", "shell", "zsh", "console", "shellsession", "fish", "ksh"],
        strings: &[long("\"", "\""), raw("'", "'")],
        keywords: "alias case cd do done echo elif else esac eval exec exit export fi for function if in local read return select set shift source then trap unset until while",
        constants: "true false",
        sigils: "$",
        ..HASH
    },
    Language {
        names: &["powershell", "ps1", "pwsh"],
        block_comments: &[("<#", "#>")],
        keywords: "begin break catch class continue data do dynamicparam else elseif end enum exit filter finally for foreach function if in param process return switch throw trap try until using while",
        constants: "",
        sigils: "$",
        ignores_case: true,
        ..HASH
    },
    Language {
        names: &["perl", "pl", "pm"],
        strings: LONG_QUOTES,
        keywords: "die do else elsif eval for foreach if last local my next no our package print redo require return sub unless until use while",
        constants: "undef",
        sigils: "$@",
        ..HASH
    },
    Language {
        names: &["elixir", "ex", "exs"],
        strings: &[long("\"\"\"", "\"\"\""), string("\"", "\""), string("'", "'")],
        keywords: "after alias and case catch cond def defguard defimpl defmacro defmodule defp defprotocol defstruct do else end fn for if import in not or quote raise receive require rescue try unless unquote use when with",
        constants: "true false nil",
        sigils: "@",
        ..HASH
    },
    Language {
        names: &["r"],
        keywords: "break else for function if in library next repeat return while",
        constants: "TRUE FALSE NULL NA Inf NaN",
        ..HASH
    },
    Language {
        names: &["julia", "jl"],
        block_comments: &[("#=", "=#")],
        strings: &[long("\"\"\"", "\"\"\""), string("\"", "\"")],
        has_char_literals: true,
        keywords: "abstract baremodule begin break catch const continue do else elseif end export finally for function global if import in let local macro module mutable primitive quote return struct try type using where while",
        constants: "true false nothing missing",
        sigils: "@",
        ..HASH
    },
    Language {
        names: &["lua"],
        line_comments: &["--"],
        block_comments: &[("--[[", "]]")],
        strings: &[raw("[[", "]]"), string("\"", "\""), string("'", "'")],
        keywords: "and break do else elseif end for function goto if in local not or repeat return then until while",
        constants: "true false nil",
        ..BASE
    },
    Language {
        names: &["haskell", "hs"],
        line_comments: &["--"],
        block_comments: &[("{-", "-}")],
        strings: &[string("\"", "\"")],
        has_char_literals: true,
        keywords: "as case class data default deriving do else family forall foreign hiding if import in infix infixl infixr instance let mdo module newtype of qualified rec then type where",
        constants: "True False Nothing Just",
        ..BASE
    },
    Language {
        names: &["ocaml", "ml", "mli", "fsharp", "fs"],
        line_comments: &[],
        block_comments: &[("(*", "*)")],
        strings: &[long("\"", "\"")],
        has_char_literals: true,
        keywords: "and as assert begin class constraint do done downto else end exception external for fun function functor if in include inherit initializer lazy let match method module mutable new nonrec object of open or private rec sig struct then to try type val virtual when while with",
        constants: "true false None Some",
        ..BASE
    },
    Language {
        names: &["sql", "psql", "mysql", "sqlite", "postgresql"],
        line_comments: &["--"],
        strings: &[StringRule { open: "'", close: "'", has_escapes: false, is_multiline: true }],
        keywords: "add all alter and any as asc begin between by case check column commit constraint create cross database default delete desc distinct drop else end exists explain foreign from full group having if in index inner insert intersect into is join key left like limit not offset on or order outer over partition primary references returning right rollback select set table then transaction trigger union unique update using values view when where with integer text varchar",
        constants: "true false null",
        ignores_case: true,
        ..BASE
    },
    Language {
        names: &["json", "jsonc", "json5", "jsonl", "ipynb"],
        strings: &[string("\"", "\"")],
        form: Form::Json,
        ..BASE
    },
    Language {
        names: &["yaml", "yml"],
        constants: "true false null yes no on off",
        form: Form::Yaml,
        ..HASH
    },
    Language { names: &["toml", "lock"], strings: PYTHON, form: Form::Ini, ..HASH },
    Language {
        names: &["ini", "cfg", "conf", "properties", "dotenv", "env", "editorconfig", "gitconfig", "desktop"],
        line_comments: &["#", ";"],
        form: Form::Ini,
        ..HASH
    },
    Language {
        names: &["css", "scss", "less", "sass"],
        keywords: "@media @import @font-face @keyframes @supports @use @include @mixin !important from to and not",
        constants: "",
        form: Form::Css,
        ..BASE
    },
    Language {
        names: &["html", "xml", "svg", "vue", "svelte", "xhtml", "htm", "plist", "xsd", "xsl"],
        line_comments: &[],
        block_comments: &[("<!--", "-->")],
        strings: &[],
        constants: "",
        form: Form::Markup,
        ..BASE
    },
    Language { names: &["diff", "patch"], form: Form::Diff, ..BASE },
    Language {
        names: &["dockerfile", "docker", "containerfile"],
        keywords: "add arg as cmd copy entrypoint env expose from healthcheck label maintainer onbuild run shell stopsignal user volume workdir",
        sigils: "$",
        ignores_case: true,
        ..HASH
    },
    Language {
        names: &["makefile", "make", "mk", "justfile", "just"],
        strings: &[],
        keywords: "define else endef endif export ifdef ifeq ifndef ifneq include override unexport",
        constants: "",
        sigils: "$@",
        ..HASH
    },
    Language {
        names: &["cmake"],
        keywords: "if elseif else endif foreach endforeach function endfunction macro endmacro while endwhile return set option project add_executable add_library target_link_libraries include find_package",
        constants: "on off true false",
        sigils: "$",
        ignores_case: true,
        ..HASH
    },
    Language {
        names: &["nix"],
        line_comments: &["#"],
        strings: &[long("''", "''"), long("\"", "\"")],
        keywords: "assert else if import in inherit let or rec then with",
        ..BASE
    },
    Language {
        names: &["hcl", "terraform", "tf", "tfvars"],
        line_comments: &["#", "//"],
        strings: &[string("\"", "\"")],
        keywords: "data dynamic for for_each if in locals module output provider resource terraform variable",
        ..BASE
    },
    Language {
        names: &["protobuf", "proto"],
        keywords: "enum extend extensions import map message oneof option optional package public repeated required reserved returns rpc service stream syntax bool bytes double float int32 int64 string uint32 uint64",
        ..BASE
    },
    Language {
        names: &["graphql", "gql"],
        strings: &[long("\"\"\"", "\"\"\""), string("\"", "\"")],
        keywords: "directive enum extend fragment implements input interface mutation on query scalar schema subscription type union",
        sigils: "$@",
        ..HASH
    },
    Language {
        names: &["clojure", "clj", "cljs", "edn", "scheme", "lisp", "elisp", "el", "racket", "rkt"],
        line_comments: &[";"],
        block_comments: &[("#|", "|#")],
        strings: &[long("\"", "\"")],
        keywords: "and case cond def define defmacro defmethod defn defun do fn for if lambda let loop ns or quote recur require set when",
        constants: "true false nil",
        ..BASE
    },
];
