; What only C's grammar has.

; Parameters as they were written before there were prototypes: f(a, b) int a, b; { … }.
(parameter_list (identifier) @param) @params
(parameter_list (variadic_parameter) @param) @params
