(function_declaration name: (identifier) @name parameters: (parameter_list) @params) @function
(function_declaration result: (_) @returns)

; A method names its type in the receiver.
(method_declaration
  receiver: (parameter_list (parameter_declaration type: [
    (type_identifier) @parent
    (pointer_type (type_identifier) @parent)
    (generic_type type: (type_identifier) @parent)
    (pointer_type (generic_type type: (type_identifier) @parent))
  ]))
  name: (field_identifier) @name
  parameters: (parameter_list) @params) @method
(method_declaration result: (_) @returns)

(parameter_list (parameter_declaration name: (identifier) @param)) @params
(parameter_list (parameter_declaration !name type: (_) @param)) @params
(parameter_list (variadic_parameter_declaration name: (identifier) @param.rest)) @params

(type_spec name: (type_identifier) @name type: (struct_type)) @struct
(type_spec name: (type_identifier) @name type: (interface_type)) @interface
(type_spec name: (type_identifier) @name) @type
(type_alias name: (type_identifier) @name) @type

; Fields; what is embedded is a base.
(type_spec type: (struct_type (field_declaration_list (field_declaration name: (field_identifier) @name) @field)))
(type_spec name: (type_identifier) @name type: (struct_type (field_declaration_list (field_declaration !name type: (_) @base)))) @struct
(interface_type (method_elem name: (field_identifier) @name parameters: (parameter_list) @params) @method)
(method_elem result: (_) @returns)
(type_spec name: (type_identifier) @name type: (interface_type (type_elem . [(type_identifier) (qualified_type) (generic_type)] @base .))) @interface

; Without the field's name: with it, only the first of several is found.
(source_file (const_declaration (const_spec (identifier) @name) @constant))
(source_file (var_declaration [
  (var_spec name: (identifier) @name) @variable
  (var_spec_list (var_spec name: (identifier) @name) @variable)
]))

(import_spec path: (_) @import)

(call_expression function: (identifier) @call)
(call_expression function: (selector_expression field: (field_identifier) @call))

[(comment) (interpreted_string_literal_content) (raw_string_literal_content) (rune_literal)] @text
