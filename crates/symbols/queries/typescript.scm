; What only TypeScript's grammars have.

(formal_parameters (required_parameter pattern: [(identifier) (object_pattern) (array_pattern) (rest_pattern)] @param)) @params
(formal_parameters (required_parameter pattern: (_) @param.optional value: (_))) @params
(formal_parameters (optional_parameter pattern: (_) @param.optional)) @params

(function_declaration return_type: (_ (_) @returns))
(function_signature return_type: (_ (_) @returns))
(generator_function_declaration return_type: (_ (_) @returns))
(method_definition return_type: (_ (_) @returns))
(method_signature return_type: (_ (_) @returns))
(abstract_method_signature return_type: (_ (_) @returns))
(variable_declarator value: [
  (arrow_function return_type: (_ (_) @returns))
  (function_expression return_type: (_ (_) @returns))
])
(pair value: (arrow_function return_type: (_ (_) @returns)))
(public_field_definition value: (arrow_function return_type: (_ (_) @returns)))

; Declarations without a body: overloads, ambient functions.
(function_signature name: (identifier) @name parameters: (formal_parameters) @params) @function

(abstract_class_declaration name: (_) @name) @class
(class_heritage (extends_clause value: (_) @base))
(class_heritage (implements_clause (_) @base))
(abstract_method_signature name: (_) @name parameters: (formal_parameters) @params) @method
(class_body (method_signature name: (_) @name parameters: (formal_parameters) @params) @method)
(public_field_definition name: (_) @name value: (arrow_function parameters: (formal_parameters) @params)) @method
(public_field_definition name: (_) @name value: (function_expression parameters: (formal_parameters) @params)) @method
(public_field_definition value: [(arrow_function "async" @async) (function_expression "async" @async)])
(public_field_definition name: (_) @name) @field
; Parameters that declare a field: constructor(private readonly clock: Clock).
(required_parameter (accessibility_modifier) pattern: (identifier) @name) @field
(optional_parameter (accessibility_modifier) pattern: (identifier) @name) @field

(interface_declaration name: (_) @name) @interface
(interface_declaration (extends_type_clause type: (_) @base))
(interface_body (method_signature name: (_) @name parameters: (formal_parameters) @params) @method)
(interface_body (construct_signature "new" @name parameters: (formal_parameters) @params) @method)
(interface_body (property_signature name: (_) @name) @field)

(type_alias_declaration name: (_) @name) @type
(type_alias_declaration value: (object_type (property_signature name: (_) @name) @field))
(type_alias_declaration value: (object_type (method_signature name: (_) @name parameters: (formal_parameters) @params) @method))

(enum_declaration name: (_) @name) @enum
(enum_body name: (_) @name @variant)
(enum_assignment name: (_) @name) @variant

(internal_module name: (_) @name) @module
(module name: (_) @name body: (_)) @module
(ambient_declaration (lexical_declaration (variable_declarator name: (identifier) @name) @constant))
(ambient_declaration (variable_declaration (variable_declarator name: (identifier) @name) @variable))

(import_require_clause source: (string) @import)
