; Functions, with or without a body. Inside a trait or an impl they become methods.
(function_item name: (_) @name parameters: (parameters) @params) @function
(function_signature_item name: (_) @name parameters: (parameters) @params) @function
(function_item return_type: (_) @returns)
(function_signature_item return_type: (_) @returns)
(function_modifiers "async" @async)

(parameters (self_parameter) @param) @params
(parameters (parameter pattern: _ @param)) @params
(parameters (variadic_parameter) @param) @params

(macro_definition name: (identifier) @name) @macro

; Types.
(struct_item name: (type_identifier) @name) @struct
(union_item name: (type_identifier) @name) @union
(enum_item name: (type_identifier) @name) @enum
(trait_item name: (type_identifier) @name) @trait
(trait_item bounds: (trait_bounds [(type_identifier) (scoped_type_identifier) (generic_type)] @base))
(type_item name: (type_identifier) @name) @type
(associated_type name: (type_identifier) @name) @type

(struct_item body: (field_declaration_list (field_declaration name: (field_identifier) @name) @field))
(union_item body: (field_declaration_list (field_declaration name: (field_identifier) @name) @field))
(enum_variant name: (identifier) @name) @variant

; What is derived says what a value can do; what every type derives says nothing.
((attribute_item (attribute (identifier) @_derive arguments: (token_tree (identifier) @base . ["," ")"])))
  . (attribute_item)*
  . [
    (struct_item name: (type_identifier) @name) @struct
    (enum_item name: (type_identifier) @name) @enum
    (union_item name: (type_identifier) @name) @union
  ]
  (#eq? @_derive "derive")
  (#not-any-of? @base "Debug" "PartialEq" "Eq" "PartialOrd" "Ord" "Hash"))

; Implementations: the type's members, the trait as one more base.
(impl_item type: (type_identifier) @name) @scope
(impl_item type: (generic_type type: (type_identifier) @name)) @scope
(impl_item type: (generic_type type: (scoped_type_identifier name: (type_identifier) @name))) @scope
(impl_item type: (scoped_type_identifier name: (type_identifier) @name)) @scope
(impl_item type: (primitive_type) @name) @scope
(impl_item type: (reference_type type: (_) @name)) @scope
(impl_item type: [(tuple_type) (array_type) (dynamic_type) (pointer_type) (function_type)] @name) @scope
(impl_item trait: (_) @base)

; Values.
(const_item name: (identifier) @name) @constant
(static_item name: (identifier) @name) @variable

; Modules.
(mod_item name: (identifier) @name body: (_)) @module
(mod_item name: (identifier) @import.submodule !body)
(mod_item (visibility_modifier) @import.public name: (identifier) @import.submodule !body)

(use_declaration argument: (_) @import)
(use_declaration (visibility_modifier) @import.public argument: (_) @import)
(extern_crate_declaration name: (identifier) @import)

; Tests.
((mod_item name: (identifier) @_name) @test (#any-of? @_name "tests" "test"))
((attribute_item (attribute (identifier) @_cfg arguments: (token_tree . (identifier) @_test)))
  . (attribute_item)*
  . [(mod_item) (function_item) (impl_item)] @test
  (#eq? @_cfg "cfg") (#eq? @_test "test"))
((attribute_item (attribute (identifier) @_test)) . (attribute_item)* . (function_item) @test (#eq? @_test "test"))

; Calls.
(call_expression function: (identifier) @call)
(call_expression function: (scoped_identifier name: (identifier) @call))
(call_expression function: (field_expression field: (field_identifier) @call))
(call_expression function: (generic_function function: (identifier) @call))
(call_expression function: (generic_function function: (scoped_identifier name: (identifier) @call)))
(call_expression function: (generic_function function: (field_expression field: (field_identifier) @call)))
(macro_invocation macro: (identifier) @call)

[(line_comment) (block_comment) (string_content) (char_literal)] @text
