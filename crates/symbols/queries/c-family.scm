; What C and C++ have in common.

; Functions. A pointer that is returned wraps the declarator, brackets may keep a macro of the same name away.
(function_definition declarator: [
  (function_declarator declarator: [(identifier) @name (parenthesized_declarator (identifier) @name)] parameters: (parameter_list) @params)
  (pointer_declarator declarator: (function_declarator
    declarator: [(identifier) @name (parenthesized_declarator (identifier) @name)] parameters: (parameter_list) @params))
  (pointer_declarator declarator: (pointer_declarator declarator: (function_declarator
    declarator: [(identifier) @name (parenthesized_declarator (identifier) @name)] parameters: (parameter_list) @params)))
]) @function
; One that returns a pointer to a function: void (*signal(int, void (*)(int)))(int).
(function_definition declarator: (function_declarator declarator: (parenthesized_declarator (pointer_declarator declarator:
  (function_declarator declarator: (identifier) @name parameters: (parameter_list) @params))))) @function
; Where the body does not parse, the head of a function is still one.
([
  (ERROR (function_declarator declarator: (identifier) @name parameters: (parameter_list) @params) @function)
  (ERROR (pointer_declarator declarator: (function_declarator declarator: (identifier) @name parameters: (parameter_list) @params)) @function)
] (#not-match? @name "^[A-Z0-9_]+$"))

; Prototypes. A declarator in brackets with a star is a pointer to a function: a variable.
(declaration declarator: [
  (function_declarator declarator: [(identifier) @name (parenthesized_declarator (identifier) @name)] parameters: (parameter_list) @params)
  (pointer_declarator declarator: (function_declarator
    declarator: [(identifier) @name (parenthesized_declarator (identifier) @name)] parameters: (parameter_list) @params))
  (pointer_declarator declarator: (pointer_declarator declarator: (function_declarator
    declarator: [(identifier) @name (parenthesized_declarator (identifier) @name)] parameters: (parameter_list) @params)))
]) @function
; API int (f)(void): the macro is taken for the type, the type for the name, the name for a parameter.
(declaration declarator: (function_declarator
  declarator: (function_declarator
    declarator: (identifier) @returns
    parameters: (parameter_list . (parameter_declaration !declarator type: (type_identifier) @name) .))
  parameters: (parameter_list) @params)) @function

; What is returned: the type, and the stars that stand beside it.
([
  (function_definition type: (_) @returns . declarator: (function_declarator declarator: (_)))
  (declaration type: (_) @returns . declarator: (function_declarator declarator: (identifier)))
] (#not-any-of? @returns "void" "auto"))
([
  (function_definition type: (_) @returns . declarator: (pointer_declarator "*" @returns declarator: (function_declarator)))
  (function_definition type: (_) @returns . declarator: (pointer_declarator "*" @returns declarator: (pointer_declarator "*" @returns)))
  (declaration type: (_) @returns . declarator: (pointer_declarator "*" @returns declarator: (function_declarator)))
  (declaration type: (_) @returns . declarator: (pointer_declarator "*" @returns declarator: (pointer_declarator "*" @returns)))
])
; A macro in front (API int f(void)) is taken for the type; the type is then the error after it.
([
  (function_definition type: (_) . (ERROR (identifier) @returns .) . declarator: (function_declarator))
  (declaration type: (_) . (ERROR (identifier) @returns .) . declarator: (function_declarator))
] (#not-eq? @returns "void"))
(function_definition type: (_) . (ERROR (identifier) @returns .) . declarator: (pointer_declarator "*" @returns))
(declaration type: (_) . (ERROR (identifier) @returns .) . declarator: (pointer_declarator "*" @returns declarator: (function_declarator)))

(parameter_list (parameter_declaration declarator: [
  (identifier) @param
  (pointer_declarator declarator: [
    (identifier) @param
    (pointer_declarator declarator: (identifier) @param)
    (pointer_declarator declarator: (pointer_declarator declarator: (identifier) @param))
    (array_declarator declarator: (identifier) @param)
  ])
  (array_declarator declarator: [(identifier) @param (array_declarator declarator: (identifier) @param)])
  (function_declarator declarator: [(identifier) @param (parenthesized_declarator (pointer_declarator declarator: (identifier) @param))])
])) @params
(parameter_list (parameter_declaration !declarator type: (_) @param) (#not-eq? @param "void")) @params
(parameter_list (parameter_declaration declarator: [(abstract_pointer_declarator) (abstract_array_declarator) (abstract_function_declarator)]) @param) @params

; Types. Only those with a body: the others are mentions.
(struct_specifier name: (type_identifier) @name body: (_)) @struct
(union_specifier name: (type_identifier) @name body: (_)) @union
(enum_specifier name: (type_identifier) @name body: (_)) @enum
; Without a name of their own they have that of the typedef.
(type_definition type: (struct_specifier !name body: (_)) declarator: (type_identifier) @name) @struct
(type_definition type: (union_specifier !name body: (_)) declarator: (type_identifier) @name) @union
(type_definition type: (enum_specifier !name body: (_)) declarator: (type_identifier) @name) @enum
; A second name, on the name alone: the type stands beside it, not inside it.
((type_definition
  type: [(struct_specifier name: (_) @_tag body: (_)) (union_specifier name: (_) @_tag body: (_)) (enum_specifier name: (_) @_tag body: (_))]
  declarator: [(type_identifier) @name @type (pointer_declarator declarator: (type_identifier) @name @type)])
  (#not-eq? @name @_tag))
(type_definition
  type: [(struct_specifier name: (_) !body) (union_specifier name: (_) !body) (enum_specifier name: (_) !body)]
  declarator: [(type_identifier) @name @type (pointer_declarator declarator: (type_identifier) @name @type)])
(type_definition type: [(primitive_type) (sized_type_specifier) (type_identifier)]
  declarator: [(type_identifier) @name @type (pointer_declarator declarator: (type_identifier) @name @type)])
(type_definition declarator: [
  (primitive_type) @name @type
  (pointer_declarator declarator: (pointer_declarator declarator: (type_identifier) @name @type))
  (array_declarator declarator: (type_identifier) @name @type)
  (function_declarator declarator: [
    (type_identifier) @name @type
    (parenthesized_declarator [
      (type_identifier) @name @type
      (pointer_declarator declarator: (type_identifier) @name @type)
      (pointer_declarator declarator: (pointer_declarator declarator: (type_identifier) @name @type))
    ])
  ])
  (pointer_declarator declarator: (function_declarator declarator: (parenthesized_declarator (pointer_declarator declarator: (type_identifier) @name @type))))
])

; Fields.
(field_declaration declarator: (field_identifier) @name @field)
(field_declaration declarator: (pointer_declarator declarator: (field_identifier) @name @field))
(field_declaration declarator: (pointer_declarator declarator: (pointer_declarator declarator: (field_identifier) @name @field)))
(field_declaration declarator: (array_declarator declarator: (field_identifier) @name @field))
(field_declaration declarator: (array_declarator declarator: (array_declarator declarator: (field_identifier) @name @field)))
(field_declaration declarator: (pointer_declarator declarator: (array_declarator declarator: (field_identifier) @name @field)))
(field_declaration declarator: (function_declarator
  declarator: (parenthesized_declarator (pointer_declarator declarator: (field_identifier) @name @field))))
(field_declaration declarator: (pointer_declarator declarator: (function_declarator
  declarator: (parenthesized_declarator (pointer_declarator declarator: (field_identifier) @name @field)))))

; Cases of an enum without a name are constants of the file.
(enum_specifier !name body: (enumerator_list (enumerator name: (identifier) @name) @constant))
(enumerator name: (identifier) @name) @variant

; Values of a file, and pointers to functions.
[
  (translation_unit (declaration declarator: [
    (identifier) @name @variable
    (array_declarator declarator: (identifier) @name @variable)
    (pointer_declarator declarator: [(identifier) @name @variable (array_declarator declarator: (identifier) @name @variable)])
    (function_declarator declarator: (parenthesized_declarator (pointer_declarator declarator: (identifier) @name @variable)))
    (init_declarator declarator: [
      (identifier) @name @variable
      (array_declarator declarator: (identifier) @name @variable)
      (pointer_declarator declarator: [(identifier) @name @variable (array_declarator declarator: (identifier) @name @variable)])
      (function_declarator declarator: (parenthesized_declarator (pointer_declarator declarator: (identifier) @name @variable)))
    ])
  ]))
  (declaration_list (declaration declarator: [
    (identifier) @name @variable
    (array_declarator declarator: (identifier) @name @variable)
    (pointer_declarator declarator: [(identifier) @name @variable (array_declarator declarator: (identifier) @name @variable)])
    (function_declarator declarator: (parenthesized_declarator (pointer_declarator declarator: (identifier) @name @variable)))
    (init_declarator declarator: [
      (identifier) @name @variable
      (array_declarator declarator: (identifier) @name @variable)
      (pointer_declarator declarator: [(identifier) @name @variable (array_declarator declarator: (identifier) @name @variable)])
      (function_declarator declarator: (parenthesized_declarator (pointer_declarator declarator: (identifier) @name @variable)))
    ])
  ]))
  (preproc_ifdef (declaration declarator: [
    (identifier) @name @variable
    (array_declarator declarator: (identifier) @name @variable)
    (pointer_declarator declarator: [(identifier) @name @variable (array_declarator declarator: (identifier) @name @variable)])
    (function_declarator declarator: (parenthesized_declarator (pointer_declarator declarator: (identifier) @name @variable)))
    (init_declarator declarator: [
      (identifier) @name @variable
      (array_declarator declarator: (identifier) @name @variable)
      (pointer_declarator declarator: [(identifier) @name @variable (array_declarator declarator: (identifier) @name @variable)])
      (function_declarator declarator: (parenthesized_declarator (pointer_declarator declarator: (identifier) @name @variable)))
    ])
  ]))
  (preproc_if (declaration declarator: [
    (identifier) @name @variable
    (array_declarator declarator: (identifier) @name @variable)
    (pointer_declarator declarator: [(identifier) @name @variable (array_declarator declarator: (identifier) @name @variable)])
    (function_declarator declarator: (parenthesized_declarator (pointer_declarator declarator: (identifier) @name @variable)))
    (init_declarator declarator: [
      (identifier) @name @variable
      (array_declarator declarator: (identifier) @name @variable)
      (pointer_declarator declarator: [(identifier) @name @variable (array_declarator declarator: (identifier) @name @variable)])
      (function_declarator declarator: (parenthesized_declarator (pointer_declarator declarator: (identifier) @name @variable)))
    ])
  ]))
]

; Macros. One without a value is a guard or a switch.
(preproc_function_def name: (identifier) @name parameters: (preproc_params) @params) @macro
(preproc_params (identifier) @param) @params
(preproc_params "..." @param) @params
(preproc_def name: (identifier) @name value: (preproc_arg)) @constant

(preproc_include path: [(string_literal) (system_lib_string)] @import)

(call_expression function: (identifier) @call)
(call_expression function: (field_expression field: (field_identifier) @call))
(call_expression function: (parenthesized_expression (identifier) @call))

[(comment) (string_content) (char_literal) (system_lib_string)] @text
