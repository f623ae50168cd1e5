; Both forms: name() { … } and function name { … }.
(function_definition name: (word) @name) @function
; Where the body does not parse, the head of a function is still one.
(ERROR (word) @name @function . "(" . ")")
(ERROR "function" . (word) @name @function)

; Variables of the script that are named like settings, or declared as lasting.
(program (variable_assignment name: (variable_name) @name) @variable (#match? @name "^[A-Z]"))
((declaration_command ["export" "readonly"] (variable_assignment name: (variable_name) @name) @constant) (#match? @name "^[A-Z]"))

; Of a path that begins with a variable or a command, what is written out.
((command name: (command_name (word) @_source) . argument: [
  (word) @import
  (raw_string) @import
  (string (string_content) @import .)
  (concatenation (word) @import .)
]) (#any-of? @_source "source" "."))

(command name: (command_name (word) @call))

[(comment) (raw_string) (string_content) (heredoc_content)] @text
