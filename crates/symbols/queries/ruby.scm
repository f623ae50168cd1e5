; Classes and modules, also those that name their place: class A::B.
(class name: (constant) @name) @class
(class name: (scope_resolution scope: (_) @parent name: (constant) @name)) @class
(class superclass: (superclass (_) @base))
(module name: (constant) @name) @module
(module name: (scope_resolution name: (constant) @name)) @module

; What is mixed in.
([
  (class body: (body_statement (call method: (identifier) @_mix arguments: (argument_list [(constant) (scope_resolution)] @base))))
  (module body: (body_statement (call method: (identifier) @_mix arguments: (argument_list [(constant) (scope_resolution)] @base))))
] (#any-of? @_mix "include" "extend" "prepend"))

; Classes that are made: A = Struct.new(:b, :c) do … end.
((assignment left: (constant) @name right: (call receiver: (constant) @_maker method: (identifier) @_new)) @class
  (#any-of? @_maker "Struct" "Class" "Data") (#any-of? @_new "new" "define"))
((assignment left: (constant) right: (call receiver: (constant) @_class method: (identifier) @_new arguments: (argument_list . (_) @base)))
  (#eq? @_class "Class") (#eq? @_new "new"))
((assignment left: (constant) right: (call receiver: (constant) @_maker arguments: (argument_list (simple_symbol) @name @field)))
  (#any-of? @_maker "Struct" "Data"))

; Functions. Inside `class << self` the class is the nearest definition, as it should be.
(method name: (_) @name) @function
(singleton_method object: (self) name: (_) @name) @function
(singleton_method object: (constant) @parent name: (_) @name) @method
(singleton_method name: (_) @name) @function
(method name: (_) @name parameters: (method_parameters) @params) @function
(singleton_method name: (_) @name parameters: (method_parameters) @params) @function

(method_parameters [
  (identifier) (splat_parameter) (hash_splat_parameter) (block_parameter) (forward_parameter) (destructured_parameter)
] @param) @params
(method_parameters (optional_parameter name: (identifier) @param.optional)) @params
(method_parameters (keyword_parameter name: (identifier) @param)) @params
(method_parameters (keyword_parameter name: (identifier) @param.optional value: (_))) @params

; Functions that are made, where the name is written out.
((call method: (identifier) @_define arguments: (argument_list . [(simple_symbol) @name (string . (string_content) @name .)])) @method
  (#any-of? @_define "define_method" "define_singleton_method" "alias_method"))
(alias name: (_) @name) @method
((call method: (identifier) @_attr arguments: (argument_list (simple_symbol) @name @property))
  (#match? @_attr "^(attr(_reader|_writer|_accessor)?|[cm]attr_(reader|writer|accessor)|class_attribute|delegate)$"))

(assignment left: (constant) @name) @constant

((call method: (identifier) @_require arguments: (argument_list . (string) @import))
  (#any-of? @_require "require" "require_relative" "load"))
((call method: (identifier) @_autoload arguments: (argument_list (simple_symbol) . (string) @import)) (#eq? @_autoload "autoload"))

(call method: (identifier) @call)
((call receiver: [(constant) @call (scope_resolution name: (constant) @call)] method: (identifier) @_new) (#eq? @_new "new"))

[(comment) (string_content) (heredoc_content)] @text
