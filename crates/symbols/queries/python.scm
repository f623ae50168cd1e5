; Properties, and what sets or deletes them, before the functions that they are.
(decorated_definition
  (decorator [
    (identifier) @_decorator
    (attribute attribute: (identifier) @_decorator)
    (call function: [(identifier) @_decorator (attribute attribute: (identifier) @_decorator)])
  ])
  definition: (function_definition name: (identifier) @name) @property
  (#any-of? @_decorator "property" "cached_property" "abstractproperty" "hybrid_property" "setter" "deleter"))

(function_definition name: (identifier) @name parameters: (parameters) @params) @function
(function_definition return_type: (type) @returns)
(function_definition "async" @async)

(parameters (identifier) @param) @params
(parameters (typed_parameter . [(identifier) (list_splat_pattern) (dictionary_splat_pattern)] @param)) @params
(parameters (default_parameter name: (_) @param.optional)) @params
(parameters (typed_default_parameter name: (_) @param.optional)) @params
(parameters [(list_splat_pattern) (dictionary_splat_pattern) (keyword_separator) (tuple_pattern)] @param) @params

(class_definition name: (identifier) @name) @class
(class_definition superclasses: (argument_list [(identifier) (attribute) (subscript)] @base))

; Class variables, and the instance variables that the constructor sets.
(class_definition body: (block (expression_statement (assignment left: (identifier) @name) @field)))
((function_definition
  name: (identifier) @_init
  body: (block (expression_statement
    (assignment left: (attribute object: (identifier) @_self attribute: (identifier) @name)) @field)))
  (#eq? @_init "__init__") (#eq? @_self "self"))

; Module variables that others are likely to use: constants, types, and objects that are built once.
(module (expression_statement (assignment left: (identifier) @name) @variable) (#match? @name "^[A-Z]"))
(module (expression_statement (assignment left: (identifier) @name right: (call)) @variable)
  (#not-match? @name "^(_.*|log|logger|parser)$"))
(type_alias_statement left: (type [(identifier) @name (generic_type (identifier) @name)])) @type

(import_statement name: (dotted_name) @import)
(import_statement name: (aliased_import name: (dotted_name) @import))
(import_from_statement module_name: (_) @import name: (dotted_name) @import.name)
(import_from_statement module_name: (_) @import name: (aliased_import name: (dotted_name) @import.name))
(import_from_statement module_name: (_) @import (wildcard_import) @import.public)

(call function: (identifier) @call)
(call function: (attribute attribute: (identifier) @call))

[(comment) (string_content)] @text
