; Types.
(type_binding name: (type_constructor) @name body: (record_declaration)) @struct
(type_binding name: (type_constructor) @name body: (variant_declaration)) @enum
(type_binding name: (type_constructor) @name) @type
(exception_definition (constructor_declaration (constructor_name) @name)) @class
(constructor_declaration (constructor_name) @name) @variant
(field_declaration (field_name) @name) @field

; Functions: those from elsewhere, and signatures.
(external (value_name) @name type: (_) @returns) @function
(value_specification [(value_name) (parenthesized_operator)] @name type: (function_type) @returns) @function
(value_specification (value_name) @name type: (_) @returns) @variable

; Modules and their types.
(module_definition (module_binding (module_name) @name)) @module
(module_type_definition (module_type_name) @name) @interface

; Classes.
(class_binding (class_name) @name) @class
(class_type_binding (class_type_name) @name) @interface
(inheritance_definition class: (_) @base)
(method_definition (method_name) @name) @method @params
(method_definition (parameter pattern: (_) @param)) @params
(method_specification (method_name) @name type: (_) @returns) @method
(instance_variable_definition (instance_variable_name) @name) @field

(open_module module: (module_path) @import)
(include_module module: (module_path) @import) @import.public

[(comment) (string_content) (quoted_string_content) (character)] @text
