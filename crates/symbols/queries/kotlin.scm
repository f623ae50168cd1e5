; Types.
(class_declaration "interface" name: (identifier) @name) @interface
(class_declaration (modifiers (class_modifier "enum")) name: (identifier) @name) @enum
(class_declaration name: (identifier) @name) @class
(object_declaration name: (identifier) @name) @class
(companion_object name: (identifier) @name) @class
(type_alias type: (identifier) @name) @type
(enum_entry (identifier) @name) @variant
(delegation_specifier [
  (user_type) @base
  (constructor_invocation (user_type) @base)
  (explicit_delegation (user_type) @base)
])

; Functions; one with a receiver belongs to that type. Inside a companion the class is the nearest definition.
(function_declaration (user_type . (identifier) @parent) . name: (identifier) @name (function_value_parameters) @params) @method
(function_declaration (nullable_type (user_type . (identifier) @parent)) . name: (identifier) @name (function_value_parameters) @params) @method
(function_declaration name: (identifier) @name (function_value_parameters) @params) @function
(function_declaration (function_value_parameters) . [(user_type) (nullable_type) (function_type) (parenthesized_type)] @returns)
(function_declaration (modifiers (function_modifier "suspend" @async)))
(secondary_constructor "constructor" @name (function_value_parameters) @params) @method

(function_value_parameters (parameter . (identifier) @param)) @params
(function_value_parameters (parameter . (identifier) @param.optional) . "=") @params
((function_value_parameters (parameter_modifiers (parameter_modifier) @_vararg) . (parameter . (identifier) @param.rest)) @params
  (#eq? @_vararg "vararg"))

; Properties: computed ones, fields, and the parameters of a constructor that declare one.
(class_body (property_declaration (variable_declaration . (identifier) @name) (getter)) @property)
(class_body (property_declaration (variable_declaration . (identifier) @name)) @field)
(enum_class_body (property_declaration (variable_declaration . (identifier) @name)) @field)
(source_file (property_declaration (user_type . (identifier) @parent) . (variable_declaration . (identifier) @name)) @property)
(source_file (property_declaration (variable_declaration . (identifier) @name)) @variable)
(class_parameter ["val" "var"] . (identifier) @name) @field

(import (qualified_identifier) @import)

(call_expression . (identifier) @call)
(call_expression . (navigation_expression (identifier) @call .))

[(line_comment) (block_comment) (string_content) (character_literal)] @text
