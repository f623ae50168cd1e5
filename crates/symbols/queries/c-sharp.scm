; Types. Parts of a partial class are each a definition of it.
(class_declaration name: (identifier) @name) @class
(struct_declaration name: (identifier) @name) @struct
(record_declaration name: (identifier) @name) @struct
(interface_declaration name: (identifier) @name) @interface
(enum_declaration name: (identifier) @name) @enum
(enum_member_declaration name: (identifier) @name) @variant
; Where the body does not parse, the head of a type is still one.
(ERROR "class" . (identifier) @name @class)
(ERROR "struct" . (identifier) @name @struct)
(ERROR "interface" . (identifier) @name @interface)
(ERROR "enum" . (identifier) @name @enum)
(delegate_declaration type: (_) @returns name: (identifier) @name parameters: (parameter_list) @params) @type
(base_list [(identifier) (qualified_name) (generic_name) (alias_qualified_name)] @base)
(base_list (primary_constructor_base_type type: (_) @base))

(namespace_declaration name: (_) @name) @module

; Functions.
(method_declaration name: (identifier) @name parameters: (parameter_list) @params) @method
((method_declaration returns: (_) @returns) (#not-eq? @returns "void"))
((method_declaration (modifier) @async) (#eq? @async "async"))
(constructor_declaration name: (identifier) @name parameters: (parameter_list) @params) @method
(destructor_declaration "~" . name: (identifier) @name parameters: (parameter_list) @params) @method
(operator_declaration type: (_) @returns operator: _ @name parameters: (parameter_list) @params) @method
(conversion_operator_declaration type: (_) @name parameters: (parameter_list) @params) @method
(local_function_statement name: (identifier) @name parameters: (parameter_list) @params) @function
((local_function_statement type: (_) @returns) (#not-eq? @returns "void"))
((local_function_statement (modifier) @async) (#eq? @async "async"))

; Optional is what has a value of its own.
(parameter_list (parameter name: (identifier) @param)) @params
(parameter_list (parameter name: (identifier) @param.optional "=")) @params
(parameter_list "params" name: (identifier) @param.rest) @params
(bracketed_parameter_list (parameter name: (identifier) @param)) @params

; Properties, indexers, events.
(property_declaration name: (identifier) @name) @property
(indexer_declaration "this" @name parameters: (bracketed_parameter_list) @params) @property
(event_declaration name: (identifier) @name) @property
(event_field_declaration (variable_declaration (variable_declarator name: (identifier) @name))) @field

; Fields, and the parameters of a record, which are its properties.
(field_declaration (variable_declaration (variable_declarator name: (identifier) @name) @field))
(record_declaration (parameter_list (parameter name: (identifier) @name) @property))

(using_directive [(identifier) (qualified_name) (alias_qualified_name)] @import .)

(invocation_expression function: (identifier) @call)
(invocation_expression function: (generic_name (identifier) @call))
(invocation_expression function: (member_access_expression name: [(identifier) @call (generic_name (identifier) @call)]))
(invocation_expression function: (conditional_access_expression (member_binding_expression name: [(identifier) @call (generic_name (identifier) @call)])))
(object_creation_expression type: [
  (identifier) @call
  (generic_name (identifier) @call)
  (qualified_name name: [(identifier) @call (generic_name (identifier) @call)])
])

[(comment) (string_literal_content) (string_content) (verbatim_string_literal) (raw_string_content) (character_literal)] @text
