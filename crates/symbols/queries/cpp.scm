; What only C++'s grammar has.

; Namespaces.
(namespace_definition name: (_) @name) @module

; Classes, and the special cases of templates.
(class_specifier name: (type_identifier) @name body: (_)) @class
(class_specifier name: (template_type name: (type_identifier) @name) body: (_)) @class
(struct_specifier name: (template_type name: (type_identifier) @name) body: (_)) @struct
; Where the body does not parse, the head is still one.
(ERROR "class" . (type_identifier) @name @class . ["{" ":" (base_class_clause)])
(ERROR "struct" . (type_identifier) @name @struct . ["{" ":" (base_class_clause)])
(ERROR (function_declarator declarator: (qualified_identifier
  scope: [(namespace_identifier) @parent (template_type name: (type_identifier) @parent)]
  name: [(identifier) (destructor_name) (operator_name)] @name) parameters: (parameter_list) @params) @method)
; One that is declared in another and defined outside of it.
(class_specifier name: (qualified_identifier scope: (_) @parent name: (type_identifier) @name) body: (_)) @class
(struct_specifier name: (qualified_identifier scope: (_) @parent name: (type_identifier) @name) body: (_)) @struct
(class_specifier name: (qualified_identifier name: (qualified_identifier scope: (_) @parent name: (type_identifier) @name)) body: (_)) @class
(struct_specifier name: (qualified_identifier name: (qualified_identifier scope: (_) @parent name: (type_identifier) @name)) body: (_)) @struct
; class API Name : Base { … }: the macro is taken for the type, the class for a function without parameters.
(function_definition type: (class_specifier !body) declarator: (identifier) @name) @class
(function_definition type: (struct_specifier !body) declarator: (identifier) @name) @struct
(function_definition type: [(class_specifier !body) (struct_specifier !body)] declarator: (identifier) (ERROR (identifier) @base .))
(function_definition type: [(class_specifier !body) (struct_specifier !body)] declarator: (identifier) body: (compound_statement [
  (declaration declarator: (identifier) @name @field)
  (declaration declarator: (pointer_declarator declarator: (identifier) @name @field))
  (labeled_statement (declaration declarator: (identifier) @name @field))
]))
; Its constructors are taken for calls.
((function_definition type: [(class_specifier !body) (struct_specifier !body)] declarator: (identifier) @_class body: (compound_statement [
  (expression_statement (call_expression function: (identifier) @name))
  (labeled_statement (expression_statement (call_expression function: (identifier) @name)))
] @method))
  (#eq? @_class @name))
(base_class_clause [(type_identifier) (qualified_identifier) (template_type)] @base)
(alias_declaration name: (type_identifier) @name) @type
(concept_definition name: (identifier) @name) @type

; Functions of a class, with a body.
(function_definition declarator: (function_declarator
  declarator: [(field_identifier) (destructor_name) (operator_name)] @name parameters: (parameter_list) @params)) @function
(function_definition type: (_) @returns declarator: (pointer_declarator "*" @returns declarator: (function_declarator
  declarator: [(field_identifier) (operator_name)] @name parameters: (parameter_list) @params))) @function
(function_definition type: (_) @returns declarator: (reference_declarator ["&" "&&"] @returns (function_declarator
  declarator: [(identifier) (field_identifier) (operator_name)] @name parameters: (parameter_list) @params))) @function
(function_definition declarator: (operator_cast) @name) @function
; f<int>() { … }: a special case of a template.
(function_definition declarator: (function_declarator
  declarator: (template_function name: (identifier) @name) parameters: (parameter_list) @params)) @function

; Declared only.
(field_declaration declarator: (function_declarator
  declarator: [(field_identifier) (destructor_name) (operator_name)] @name parameters: (parameter_list) @params)) @method
((field_declaration type: (_) @returns . declarator: (function_declarator declarator: [(field_identifier) (operator_name)]))
  (#not-eq? @returns "void"))
(field_declaration type: (_) @returns declarator: (pointer_declarator "*" @returns declarator: (function_declarator
  declarator: [(field_identifier) (operator_name)] @name parameters: (parameter_list) @params))) @method
(field_declaration type: (_) @returns declarator: (reference_declarator ["&" "&&"] @returns (function_declarator
  declarator: [(field_identifier) (operator_name)] @name parameters: (parameter_list) @params))) @method
(declaration declarator: (function_declarator
  declarator: [(destructor_name) (operator_name)] @name parameters: (parameter_list) @params)) @function
(declaration type: (_) @returns declarator: (reference_declarator ["&" "&&"] @returns (function_declarator
  declarator: [(identifier) (operator_name)] @name parameters: (parameter_list) @params))) @function
(declaration declarator: (operator_cast) @name) @function

; Defined outside of their class: the last scope is the type.
(function_definition declarator: [
  (function_declarator declarator: (qualified_identifier
    scope: [(namespace_identifier) @parent (template_type name: (type_identifier) @parent)]
    name: [(identifier) (destructor_name) (operator_name)] @name) parameters: (parameter_list) @params)
  (function_declarator declarator: (qualified_identifier name: (qualified_identifier
    scope: [(namespace_identifier) @parent (template_type name: (type_identifier) @parent)]
    name: [(identifier) (destructor_name) (operator_name)] @name)) parameters: (parameter_list) @params)
  (function_declarator declarator: (qualified_identifier name: (qualified_identifier name: (qualified_identifier
    scope: [(namespace_identifier) @parent (template_type name: (type_identifier) @parent)]
    name: [(identifier) (destructor_name) (operator_name)] @name))) parameters: (parameter_list) @params)
  (function_declarator declarator: (qualified_identifier
    scope: [(namespace_identifier) @parent (template_type name: (type_identifier) @parent)]
    name: (template_function name: (identifier) @name)) parameters: (parameter_list) @params)
  (qualified_identifier
    scope: [(namespace_identifier) @parent (template_type name: (type_identifier) @parent)]
    name: (operator_cast) @name)
]) @method
; The same with a macro between the parameters and the body, which ends the declaration too early.
(declaration declarator: (function_declarator declarator: (qualified_identifier
  scope: [(namespace_identifier) @parent (template_type name: (type_identifier) @parent)]
  name: [(identifier) (destructor_name) (operator_name)] @name) parameters: (parameter_list) @params)) @method
(function_definition type: (_) @returns declarator: [
  (pointer_declarator "*" @returns declarator: (function_declarator declarator: (qualified_identifier
    scope: [(namespace_identifier) @parent (template_type name: (type_identifier) @parent)]
    name: [(identifier) (operator_name)] @name) parameters: (parameter_list) @params))
  (pointer_declarator "*" @returns declarator: (function_declarator declarator: (qualified_identifier name: (qualified_identifier
    scope: [(namespace_identifier) @parent (template_type name: (type_identifier) @parent)]
    name: [(identifier) (operator_name)] @name)) parameters: (parameter_list) @params))
  (reference_declarator ["&" "&&"] @returns (function_declarator declarator: (qualified_identifier
    scope: [(namespace_identifier) @parent (template_type name: (type_identifier) @parent)]
    name: [(identifier) (operator_name)] @name) parameters: (parameter_list) @params))
  (reference_declarator ["&" "&&"] @returns (function_declarator declarator: (qualified_identifier name: (qualified_identifier
    scope: [(namespace_identifier) @parent (template_type name: (type_identifier) @parent)]
    name: [(identifier) (operator_name)] @name)) parameters: (parameter_list) @params))
]) @method

(type_definition type: [(qualified_identifier) (template_type) (decltype) (dependent_type)]
  declarator: [(type_identifier) @name @type (pointer_declarator declarator: (type_identifier) @name @type)])

; auto f() -> T
(function_declarator (trailing_return_type (_) @returns))

(parameter_list (parameter_declaration declarator: (reference_declarator (identifier) @param))) @params
(parameter_list (parameter_declaration declarator: (abstract_reference_declarator)) @param) @params
(parameter_list (optional_parameter_declaration declarator: [
  (identifier) @param.optional
  (pointer_declarator declarator: (identifier) @param.optional)
  (reference_declarator (identifier) @param.optional)
])) @params
(parameter_list (optional_parameter_declaration !declarator type: (_) @param.optional)) @params
(parameter_list (variadic_parameter_declaration declarator: [
  (variadic_declarator (identifier) @param.rest)
  (reference_declarator (variadic_declarator (identifier) @param.rest))
])) @params
(parameter_list "..." @param) @params

(field_declaration declarator: (reference_declarator (field_identifier) @name @field))

(call_expression function: (qualified_identifier name: (identifier) @call))
(call_expression function: (qualified_identifier name: (qualified_identifier name: (identifier) @call)))
(call_expression function: (template_function name: (identifier) @call))
(call_expression function: (qualified_identifier name: (template_function name: (identifier) @call)))
(call_expression function: (field_expression field: (template_method name: (field_identifier) @call)))
(new_expression type: [(type_identifier) @call (template_type name: (type_identifier) @call) (qualified_identifier name: (type_identifier) @call)])

(raw_string_content) @text
