; Tables of the file are its modules and classes.
(chunk (variable_declaration (assignment_statement
  (variable_list . name: (identifier) @name) (expression_list . value: (table_constructor)))) @class)
(chunk (assignment_statement
  (variable_list . name: (identifier) @name) (expression_list . value: (table_constructor))) @class)

; Functions: function f, function A.f, function A:f.
(function_declaration name: (identifier) @name parameters: (parameters) @params) @function
(function_declaration name: (dot_index_expression table: (_) @parent field: (identifier) @name) parameters: (parameters) @params) @method
(function_declaration name: (method_index_expression table: (_) @parent method: (identifier) @name) parameters: (parameters) @params) @method
; The same as values: A.f = function, local f = function, { f = function }.
(assignment_statement
  (variable_list . name: (dot_index_expression table: (_) @parent field: (identifier) @name))
  (expression_list . value: (function_definition parameters: (parameters) @params))) @method
(assignment_statement
  (variable_list . name: (bracket_index_expression table: (_) @parent field: (string) @name))
  (expression_list . value: (function_definition parameters: (parameters) @params))) @method
(assignment_statement
  (variable_list . name: (identifier) @name)
  (expression_list . value: (function_definition parameters: (parameters) @params))) @function
(field name: (_) @name value: (function_definition parameters: (parameters) @params)) @method

(parameters name: (identifier) @param) @params
(parameters (vararg_expression) @param) @params

; Values that are named like constants.
(chunk (variable_declaration (assignment_statement (variable_list name: (identifier) @name)) @constant (#match? @name "^[A-Z][A-Z0-9_]+$")))

((function_call name: (identifier) @_require arguments: (arguments . (string) @import)) (#any-of? @_require "require" "dofile" "loadfile"))

(function_call name: (identifier) @call)
(function_call name: (dot_index_expression field: (identifier) @call))
(function_call name: (method_index_expression method: (identifier) @call))

[(comment) (string_content)] @text
