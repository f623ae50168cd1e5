; What only JavaScript's grammar has.

(formal_parameters [(identifier) (object_pattern) (array_pattern) (rest_pattern)] @param) @params
(formal_parameters (assignment_pattern left: (_) @param.optional)) @params

(class_heritage (_) @base)
(field_definition property: (_) @name value: (arrow_function parameters: (formal_parameters) @params)) @method
(field_definition property: (_) @name value: (arrow_function parameter: (identifier) @params @param)) @method
(field_definition property: (_) @name value: (function_expression parameters: (formal_parameters) @params)) @method
(field_definition value: [(arrow_function "async" @async) (function_expression "async" @async)])
(field_definition property: (_) @name) @field
