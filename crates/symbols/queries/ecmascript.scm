; What JavaScript and TypeScript have in common. Types, and the shape of parameters, are in their own files.

(function_declaration name: (identifier) @name parameters: (formal_parameters) @params) @function
(generator_function_declaration name: (identifier) @name parameters: (formal_parameters) @params) @function
(function_declaration "async" @async)
(generator_function_declaration "async" @async)

; Functions that are values of a name.
(variable_declarator name: (identifier) @name value: (arrow_function parameters: (formal_parameters) @params)) @function
(variable_declarator name: (identifier) @name value: (arrow_function parameter: (identifier) @params @param)) @function
(variable_declarator name: (identifier) @name
  value: [(function_expression parameters: (formal_parameters) @params) (generator_function parameters: (formal_parameters) @params)]) @function
(variable_declarator value: [(arrow_function "async" @async) (function_expression "async" @async) (generator_function "async" @async)])

(export_statement "default" @name value: [
  (arrow_function parameters: (formal_parameters) @params)
  (function_expression !name parameters: (formal_parameters) @params)
]) @function
(export_statement value: [(arrow_function "async" @async) (function_expression "async" @async)])
(export_statement value: (function_expression name: (identifier) @name parameters: (formal_parameters) @params)) @function

; The same before there were modules: exports.f = …, module.exports.f = …, A.prototype.f = …, A.f = …
((assignment_expression
  left: (member_expression object: [(identifier) (member_expression)] @_object property: (property_identifier) @name)
  right: [(arrow_function parameters: (formal_parameters) @params) (function_expression parameters: (formal_parameters) @params)]) @function
  (#match? @_object "^(module[.])?exports$"))
((assignment_expression
  left: (member_expression object: (identifier) @parent property: (property_identifier) @name)
  right: [(arrow_function parameters: (formal_parameters) @params) (function_expression parameters: (formal_parameters) @params)]) @method
  (#not-any-of? @parent "exports" "module" "window" "self" "globalThis"))
((assignment_expression
  left: (member_expression
    object: (member_expression object: (identifier) @parent property: (property_identifier) @_prototype)
    property: (property_identifier) @name)
  right: [(arrow_function parameters: (formal_parameters) @params) (function_expression parameters: (formal_parameters) @params)]) @method
  (#eq? @_prototype "prototype"))
; a.b.c.f = …, module.exports = …, window.f = …, f = …
((assignment_expression
  left: (member_expression object: (member_expression) @parent property: (property_identifier) @name)
  right: [(arrow_function parameters: (formal_parameters) @params) (function_expression parameters: (formal_parameters) @params)]) @method
  (#not-match? @parent "(^module[.]exports|[.]prototype)$"))
((assignment_expression
  left: (member_expression object: (identifier) @_object property: (property_identifier) @name)
  right: [(arrow_function parameters: (formal_parameters) @params) (function_expression parameters: (formal_parameters) @params)]) @function
  (#any-of? @_object "module" "window" "self" "globalThis" "global"))
(assignment_expression
  left: (identifier) @name
  right: [(arrow_function parameters: (formal_parameters) @params) (function_expression parameters: (formal_parameters) @params)]) @function
(assignment_expression right: [(arrow_function "async" @async) (function_expression "async" @async)])

; Classes.
(class_declaration name: (_) @name) @class
(variable_declarator name: (identifier) @name value: (class)) @class
(export_statement "default" @name value: (class !name)) @class
(export_statement value: (class name: (_) @name)) @class

(class_body (method_definition ["get" "set"] name: (_) @name) @property)
(class_body (method_definition name: (_) @name parameters: (formal_parameters) @params) @method)
(method_definition "async" @async)
((method_definition
  name: (property_identifier) @_constructor
  body: (statement_block (expression_statement (assignment_expression
    left: (member_expression object: (this) property: (_) @name)) @field)))
  (#eq? @_constructor "constructor"))
; Before there were classes: function A() { this.f = function () { … } }.
(assignment_expression
  left: (member_expression object: (this) property: (_) @name)
  right: [(arrow_function parameters: (formal_parameters) @params) (function_expression parameters: (formal_parameters) @params)]) @method

; Objects with functions in them: stores, handlers, components. Not anchored at `program`: a pattern that begins there
; stays alive for the whole file, and every node pays for it.
(variable_declarator name: (identifier) @name value: (object (method_definition))) @variable
(variable_declarator name: (identifier) @name value: (object (pair value: [(arrow_function) (function_expression)]))) @variable
(variable_declarator value: (object (method_definition name: (_) @name parameters: (formal_parameters) @params) @method))
(variable_declarator value: (object (pair key: (_) @name value: [
  (arrow_function parameters: (formal_parameters) @params) (function_expression parameters: (formal_parameters) @params)]) @method))
(export_statement value: (object (method_definition name: (_) @name parameters: (formal_parameters) @params) @function))
(export_statement value: (object (pair key: (_) @name value: [
  (arrow_function parameters: (formal_parameters) @params) (function_expression parameters: (formal_parameters) @params)]) @function))
(assignment_expression right: (object (method_definition name: (_) @name parameters: (formal_parameters) @params) @function))
(assignment_expression right: (object (pair key: (_) @name value: [
  (arrow_function parameters: (formal_parameters) @params) (function_expression parameters: (formal_parameters) @params)]) @function))
; And wherever else: extend({ f() {} }).
(object (method_definition name: (_) @name parameters: (formal_parameters) @params) @method)
(pair key: (_) @name value: [
  (arrow_function parameters: (formal_parameters) @params) (function_expression parameters: (formal_parameters) @params)]) @method
; A function that has its name with it: module.exports = function name() { … }.
(function_expression name: (identifier) @name parameters: (formal_parameters) @params) @function
(pair value: [(arrow_function "async" @async) (function_expression "async" @async)])

; Values: all that are exported; of the others those named like constants, components or types.
(export_statement (lexical_declaration (variable_declarator name: (identifier) @name) @constant))
(export_statement (variable_declaration (variable_declarator name: (identifier) @name) @variable))
(lexical_declaration (variable_declarator name: (identifier) @name) @constant (#match? @name "^[A-Z]"))

(import_statement source: (string) @import)
(export_statement source: (string) @import) @import.public
(call_expression function: (import) arguments: (arguments . (string) @import))
((call_expression function: (identifier) @_require arguments: (arguments . (string) @import)) (#eq? @_require "require"))

(call_expression function: (identifier) @call)
(call_expression function: (member_expression property: (property_identifier) @call))
(new_expression constructor: (identifier) @call)
(new_expression constructor: (member_expression property: (property_identifier) @call))

[(comment) (string_fragment) (regex_pattern)] @text
