; What only a module has, and not its interface: functions and values with a body.

; Functions of a file or module: let f x = …, let f = fun x -> …, let f = function ….
(value_definition (let_binding pattern: [(value_name) (parenthesized_operator)] @name (parameter)) @function @params)
(compilation_unit (value_definition (let_binding pattern: (value_name) @name body: [(fun_expression) (function_expression)]) @function))
(structure (value_definition (let_binding pattern: (value_name) @name body: [(fun_expression) (function_expression)]) @function))
(compilation_unit (value_definition (let_binding pattern: (value_name) @name) @variable))
(structure (value_definition (let_binding pattern: (value_name) @name) @variable))
(value_definition (let_binding pattern: (value_name) type: (_) @returns))

(let_binding (parameter pattern: [
  (value_pattern) @param
  (typed_pattern pattern: (value_pattern) @param)
  (unit) @param
  (tuple_pattern) @param
  (parenthesized_pattern) @param
] !default)) @params
(let_binding (parameter pattern: [(value_pattern) @param.optional (typed_pattern pattern: (value_pattern) @param.optional)] default: (_))) @params

(application_expression function: (value_path (value_name) @call))
