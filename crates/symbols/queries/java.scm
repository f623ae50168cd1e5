(class_declaration name: (identifier) @name) @class
(record_declaration name: (identifier) @name) @struct
(interface_declaration name: (identifier) @name) @interface
(annotation_type_declaration name: (identifier) @name) @interface
(enum_declaration name: (identifier) @name) @enum
(enum_constant name: (identifier) @name) @variant

; Where the body does not parse, the head of a type is still one.
(ERROR "class" . (identifier) @name @class)
(ERROR "interface" . (identifier) @name @interface)
(ERROR "enum" . (identifier) @name @enum)

(superclass (_) @base)
(super_interfaces (type_list (_) @base))
(extends_interfaces (type_list (_) @base))

(method_declaration name: (identifier) @name parameters: (formal_parameters) @params) @method
((method_declaration type: (_) @returns) (#not-eq? @returns "void"))
(constructor_declaration name: (identifier) @name parameters: (formal_parameters) @params) @method
(compact_constructor_declaration name: (identifier) @name) @method
; What an annotation can be given: name() default value.
(annotation_type_element_declaration type: (_) @returns name: (identifier) @name) @method

(formal_parameters (formal_parameter name: (_) @param)) @params
(formal_parameters (spread_parameter (variable_declarator name: (_) @param.rest))) @params

; A record's components are its fields.
(record_declaration parameters: (formal_parameters (formal_parameter name: (identifier) @name) @field))
(field_declaration declarator: (variable_declarator name: (identifier) @name)) @field
(constant_declaration declarator: (variable_declarator name: (identifier) @name)) @constant

(import_declaration (scoped_identifier) @import)

(method_invocation name: (identifier) @call)
(object_creation_expression type: [
  (type_identifier) @call
  (generic_type . (type_identifier) @call)
  (scoped_type_identifier (type_identifier) @call .)
])

[(line_comment) (block_comment) (string_fragment) (multiline_string_fragment) (character_literal)] @text
