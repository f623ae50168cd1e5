; Everything is a call; the words that define are those of the language.
((call target: (identifier) @_def (arguments . (alias) @name) (do_block)) @module (#eq? @_def "defmodule"))
((call target: (identifier) @_def (arguments . (alias) @name) (do_block)) @interface (#eq? @_def "defprotocol"))
; defimpl P, for: T gives T the functions of P.
((call target: (identifier) @_def (arguments . (alias) @base (keywords (pair value: (alias) @name))) (do_block)) @scope (#eq? @_def "defimpl"))

; Functions: def f(a), def f, both with a guard, and operators.
((call target: (identifier) @_def (arguments . [
  (call target: (identifier) @name (arguments) @params)
  (identifier) @name
  (binary_operator left: (call target: (identifier) @name (arguments) @params) operator: "when")
  (binary_operator left: (identifier) @name operator: "when")
])) @function
  (#any-of? @_def "def" "defp" "defdelegate" "defguard" "defguardp" "defn" "defnp"))
((call target: (identifier) @_def (arguments . (binary_operator left: (_) @param operator: _ @name right: (_) @param) @params)) @function
  (#any-of? @_def "def" "defp") (#not-any-of? @name "when" "\\\\"))
((call target: (identifier) @_def (arguments . [
  (call target: (identifier) @name (arguments) @params)
  (identifier) @name
  (binary_operator left: (call target: (identifier) @name (arguments) @params) operator: "when")
])) @macro
  (#any-of? @_def "defmacro" "defmacrop"))

(arguments (identifier) @param) @params
(arguments [(map) (tuple) (list)] @param) @params
; name \\ default, %Pattern{} = name
(arguments (binary_operator left: (_) @param.optional operator: "\\\\")) @params
(arguments (binary_operator operator: "=" right: (identifier) @param)) @params

; Types and callbacks.
((unary_operator operator: "@" operand: (call target: (identifier) @_type (arguments (binary_operator left: [
  (identifier) @name
  (call target: (identifier) @name)
] operator: "::")))) @type
  (#any-of? @_type "type" "typep" "opaque"))
((unary_operator operator: "@" operand: (call target: (identifier) @_callback
  (arguments (binary_operator left: (call target: (identifier) @name) operator: "::" right: (_) @returns)))) @method
  (#any-of? @_callback "callback" "macrocallback"))
((call target: (identifier) @_struct (arguments (list (atom) @name @field))) (#any-of? @_struct "defstruct" "defexception"))
((call target: (identifier) @_struct (arguments [
  (list (keywords (pair key: (keyword) @name @field)))
  (keywords (pair key: (keyword) @name @field))
])) (#any-of? @_struct "defstruct" "defexception"))
((unary_operator operator: "@" operand: (call target: (identifier) @_behaviour (arguments (alias) @base))) (#eq? @_behaviour "behaviour"))

((call target: (identifier) @_import (arguments . (alias) @import)) (#any-of? @_import "import" "alias" "use" "require"))
((call target: (identifier) @_import (arguments . (dot left: (alias) @import right: (tuple (alias) @import.name)))) (#eq? @_import "alias"))

((call target: (identifier) @call)
  (#not-any-of? @call "def" "defp" "defmodule" "defmacro" "defmacrop" "defstruct" "alias" "import" "use" "require"))
(call target: (dot right: (identifier) @call))

[(comment) (quoted_content)] @text
