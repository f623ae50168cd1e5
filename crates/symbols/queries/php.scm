(namespace_definition name: (namespace_name) @name body: (_)) @module

(class_declaration name: (name) @name) @class
(interface_declaration name: (name) @name) @interface
(trait_declaration name: (name) @name) @trait
(enum_declaration name: (name) @name) @enum
(enum_case name: (name) @name) @variant
; What is extended, implemented, or (traits) used.
(class_declaration (base_clause (_) @base))
(class_declaration (class_interface_clause (_) @base))
(interface_declaration (base_clause (_) @base))
(enum_declaration (class_interface_clause (_) @base))
(class_declaration body: (declaration_list (use_declaration [(name) (qualified_name)] @base)))
(trait_declaration body: (declaration_list (use_declaration [(name) (qualified_name)] @base)))
(enum_declaration body: (enum_declaration_list (use_declaration [(name) (qualified_name)] @base)))

(function_definition name: (name) @name parameters: (formal_parameters) @params) @function
(method_declaration name: (name) @name parameters: (formal_parameters) @params) @method
; Functions that are values of a name.
(assignment_expression left: (variable_name (name) @name) right: [
  (anonymous_function parameters: (formal_parameters) @params)
  (arrow_function parameters: (formal_parameters) @params)
]) @function
(([
  (function_definition return_type: (_) @returns)
  (method_declaration return_type: (_) @returns)
]) (#not-eq? @returns "void"))

(formal_parameters (simple_parameter name: (variable_name (name) @param))) @params
(formal_parameters (simple_parameter name: (variable_name (name) @param.optional) default_value: (_))) @params
(formal_parameters (variadic_parameter name: (variable_name (name) @param.rest))) @params
(formal_parameters (property_promotion_parameter name: (variable_name (name) @param))) @params
(formal_parameters (property_promotion_parameter name: (variable_name (name) @param.optional) default_value: (_))) @params

; Fields, and the parameters of a constructor that make one.
(property_declaration (property_element name: (variable_name (name) @name))) @field
(property_promotion_parameter name: (variable_name (name) @name)) @field
(const_declaration (const_element . (name) @name) @constant)
((function_call_expression function: (name) @_define arguments: (arguments . (argument (string) @name))) @constant (#eq? @_define "define"))

(namespace_use_declaration (namespace_use_clause . [(qualified_name) (name)] @import))
(namespace_use_declaration (namespace_name) @import body: (namespace_use_group (namespace_use_clause . [(qualified_name) (name)] @import.name)))
(require_expression [(string) (encapsed_string)] @import)
(require_once_expression [(string) (encapsed_string)] @import)
(include_expression [(string) (encapsed_string)] @import)
(include_once_expression [(string) (encapsed_string)] @import)
; require __DIR__ . '/a.php'
(require_expression (binary_expression right: (string) @import))
(require_once_expression (binary_expression right: (string) @import))
(include_expression (binary_expression right: (string) @import))
(include_once_expression (binary_expression right: (string) @import))

(function_call_expression function: [(name) @call (qualified_name (name) @call)])
(member_call_expression name: (name) @call)
(nullsafe_member_call_expression name: (name) @call)
(scoped_call_expression name: (name) @call)
(object_creation_expression [(name) @call (qualified_name (name) @call)])

[(comment) (string_content) (nowdoc_string) (text)] @text
