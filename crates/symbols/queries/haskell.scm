; Types.
(data_type name: (_) @name) @struct
(newtype name: (_) @name) @struct
(type_synonym name: (_) @name) @type
(type_family name: (_) @name) @type
(class name: (_) @name) @trait
(data_constructor [
  (prefix name: (_) @name)
  (record name: (_) @name)
  (infix operator: (_) @name)
]) @variant
(newtype_constructor name: (_) @name) @variant
(gadt_constructor name: (_) @name) @variant
(field name: (field_name (variable) @name)) @field
((deriving classes: (_ (name) @base)) (#not-any-of? @base "Show" "Eq" "Ord" "Read"))

; An instance gives the type the functions of the class.
(instance name: (_) @base patterns: (type_patterns . [
  (name) @name
  (parens type: (apply constructor: (name) @name))
])) @scope

; Functions, under their signature.
((declarations
  (signature name: (variable) @_signature type: (_) @returns) . (function name: (variable) @name patterns: (patterns) @params) @function)
  (#eq? @_signature @name))
((declarations
  (signature name: (variable) @_signature type: (_) @returns) . (bind name: (variable) @name) @function)
  (#eq? @_signature @name))
(declarations (function name: (variable) @name patterns: (patterns) @params) @function)
(declarations (bind name: (variable) @name) @function)
(declarations (function (infix left_operand: (_) @param operator: (_) @name right_operand: (_) @param) @params) @function)
(instance_declarations (function name: (variable) @name patterns: (patterns) @params) @method)
(instance_declarations (bind name: (variable) @name) @method)
(class_declarations (signature name: (variable) @name type: (_) @returns) @method)
(foreign_import signature: (signature name: (variable) @name type: (_) @returns)) @function

(patterns (_) @param) @params

(import module: (module) @import)

(apply function: (variable) @call)
(apply function: (qualified id: (variable) @call))

[(comment) (haddock) (pragma) (string) (char)] @text
