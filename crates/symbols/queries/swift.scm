; Types: the grammar has one node for all of them.
(class_declaration declaration_kind: ["class" "actor"] name: (type_identifier) @name) @class
(class_declaration declaration_kind: "struct" name: (type_identifier) @name) @struct
(class_declaration declaration_kind: "enum" name: (type_identifier) @name) @enum
(class_declaration declaration_kind: "extension" name: (user_type (type_identifier) @name .)) @scope
(class_declaration declaration_kind: "extension" name: (user_type (type_identifier) @name . (type_arguments))) @scope
(protocol_declaration name: (type_identifier) @name) @trait
(typealias_declaration name: (type_identifier) @name) @type
(associatedtype_declaration name: (type_identifier) @name) @type
(enum_entry name: (simple_identifier) @name @variant)
(inheritance_specifier inherits_from: (_) @base)

; Functions. They hold their parameters themselves.
(function_declaration "func" . name: _ @name) @function @params
(protocol_function_declaration "func" . name: _ @name) @method @params
(init_declaration "init" @name) @method @params
(deinit_declaration "deinit" @name) @method
(subscript_declaration "subscript" @name) @method @params
(function_declaration "->" . (_) @returns)
(protocol_function_declaration "->" . (_) @returns)
(subscript_declaration "->" . (_) @returns)
(function_declaration "async" @async)
(protocol_function_declaration "async" @async)
(init_declaration "async" @async)

(function_declaration (parameter name: (simple_identifier) @param)) @params
(function_declaration (parameter name: (simple_identifier) @param.rest "...")) @params
(function_declaration (parameter name: (simple_identifier) @param.optional) . "=") @params
(protocol_function_declaration (parameter name: (simple_identifier) @param)) @params
(init_declaration (parameter name: (simple_identifier) @param)) @params
(init_declaration (parameter name: (simple_identifier) @param.optional) . "=") @params
(subscript_declaration (parameter name: (simple_identifier) @param)) @params

; Properties: computed ones, then stored ones.
(class_body (property_declaration name: (pattern bound_identifier: (simple_identifier) @name) computed_value: (_)) @property)
(enum_class_body (property_declaration name: (pattern bound_identifier: (simple_identifier) @name) computed_value: (_)) @property)
(protocol_property_declaration name: (pattern bound_identifier: (simple_identifier) @name)) @property
(class_body (property_declaration name: (pattern bound_identifier: (simple_identifier) @name)) @field)
(enum_class_body (property_declaration name: (pattern bound_identifier: (simple_identifier) @name)) @field)
(source_file (property_declaration name: (pattern bound_identifier: (simple_identifier) @name)) @variable)

(import_declaration (identifier) @import)

(call_expression . (simple_identifier) @call)
(call_expression . (navigation_expression suffix: (navigation_suffix suffix: (simple_identifier) @call)))

[(comment) (multiline_comment) (line_str_text) (multi_line_str_text) (raw_str_part)] @text
