; Classes and ids that are the whole of a selector, animations, custom properties.
(rule_set (selectors (class_selector (class_name (identifier) @name @type))))
(rule_set (selectors (id_selector (id_name) @name @type)))
(keyframes_statement (keyframes_name) @name) @type
((declaration (property_name) @name) @variable (#match? @name "^--"))

(import_statement (string_value) @import)
(import_statement (call_expression (arguments [(string_value) (plain_value)] @import)))

[(comment) (js_comment) (string_content)] @text
