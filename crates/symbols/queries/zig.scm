; Types are values of a constant.
(variable_declaration "const" . (identifier) @name (struct_declaration)) @struct
(variable_declaration "const" . (identifier) @name (opaque_declaration)) @struct
(variable_declaration "const" . (identifier) @name (enum_declaration)) @enum
(variable_declaration "const" . (identifier) @name (union_declaration)) @union
(variable_declaration "const" . (identifier) @name (error_set_declaration)) @enum
(variable_declaration "const" (error_set_declaration (identifier) @name @variant))
; A function that makes a type is that type.
(function_declaration name: (identifier) @name body: (block (expression_statement (return_expression (struct_declaration))))) @struct

((enum_declaration (container_field name: (identifier) @name) @variant) (#not-eq? @name "_"))
(union_declaration (container_field name: (identifier) @name) @variant)
(struct_declaration (container_field name: (identifier) @name) @field)

(function_declaration name: (identifier) @name (parameters) @params) @function
((function_declaration type: (_) @returns) (#not-eq? @returns "void"))
(parameters (parameter name: (identifier) @param)) @params
((parameters (parameter !name) @param) @params (#eq? @param "..."))

; Values that others can see.
(source_file (variable_declaration "pub" ["const" "var"] . (identifier) @name) @constant)
(struct_declaration (variable_declaration "pub" ["const" "var"] . (identifier) @name) @constant)

(test_declaration) @test

((builtin_function (builtin_identifier) @_import (arguments . (string) @import)) (#eq? @_import "@import"))

(call_expression function: (identifier) @call)
(call_expression function: (field_expression member: (identifier) @call))

[(comment) (string_content) (multiline_string) (character)] @text
