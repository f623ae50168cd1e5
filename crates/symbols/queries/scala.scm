; Types. A class and the object beside it are two definitions of one name.
(class_definition name: (_) @name) @class
(object_definition name: (_) @name) @class
(package_object name: (_) @name) @class
(trait_definition name: (_) @name) @trait
(enum_definition name: (_) @name) @enum
(simple_enum_case name: (_) @name) @variant
(full_enum_case name: (_) @name) @variant
(type_definition name: (type_identifier) @name) @type

([
  (class_definition extend: (extends_clause [(type_identifier) (generic_type) (stable_type_identifier)] @base))
  (object_definition extend: (extends_clause [(type_identifier) (generic_type) (stable_type_identifier)] @base))
  (trait_definition extend: (extends_clause [(type_identifier) (generic_type) (stable_type_identifier)] @base))
  (enum_definition extend: (extends_clause [(type_identifier) (generic_type) (stable_type_identifier)] @base))
])

; Functions. All lists of parameters are shown as one.
(function_definition name: (_) @name (parameters)) @function @params
(function_declaration name: (_) @name (parameters)) @function @params
(function_definition name: (_) @name) @function
(function_declaration name: (_) @name) @function
((function_definition return_type: (_) @returns) (#not-eq? @returns "Unit"))
((function_declaration return_type: (_) @returns) (#not-eq? @returns "Unit"))

(function_definition (parameters (parameter name: (_) @param))) @params
(function_definition (parameters (parameter name: (_) @param.optional default_value: (_)))) @params
(function_definition (parameters (parameter name: (_) @param.rest type: (repeated_parameter_type)))) @params
(function_declaration (parameters (parameter name: (_) @param))) @params
(function_declaration (parameters (parameter name: (_) @param.optional default_value: (_)))) @params
(function_declaration (parameters (parameter name: (_) @param.rest type: (repeated_parameter_type)))) @params

; Members for a type from elsewhere.
(extension_definition parameters: (parameters (parameter type: [(type_identifier) @name (generic_type type: (type_identifier) @name)]))) @scope

; Values. The parameters of a case class are its fields.
(template_body [
  (val_definition pattern: (identifier) @name)
  (var_definition pattern: (identifier) @name)
  (val_declaration name: (identifier) @name)
  (var_declaration name: (identifier) @name)
] @field)
(compilation_unit (val_definition pattern: (identifier) @name) @constant)
(given_definition name: (identifier) @name) @constant
(class_definition "case" class_parameters: (class_parameters (class_parameter name: (identifier) @name) @field))
(class_parameter ["val" "var"] name: (identifier) @name) @field

; From the first part of the path to the last; then the names that are taken.
(import_declaration . (identifier) @import (identifier) @import .)
(import_declaration . (identifier) @import (identifier) @import . (namespace_wildcard))
(import_declaration . (identifier) @import . (namespace_wildcard))
(import_declaration . (identifier) @import . (namespace_selectors [
  (identifier) @import.name
  (arrow_renamed_identifier name: (identifier) @import.name)
  (as_renamed_identifier name: (identifier) @import.name)
]))
(import_declaration . (identifier) @import (identifier) @import . (namespace_selectors [
  (identifier) @import.name
  (arrow_renamed_identifier name: (identifier) @import.name)
  (as_renamed_identifier name: (identifier) @import.name)
]))

(call_expression function: (identifier) @call)
(call_expression function: (field_expression field: (identifier) @call))
(call_expression function: (generic_function function: [(identifier) @call (field_expression field: (identifier) @call)]))
(instance_expression [(type_identifier) @call (generic_type type: (type_identifier) @call)])

[(comment) (block_comment) (string) (character_literal)] @text
