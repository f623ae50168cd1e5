(document (pair . [(bare_key) (dotted_key) (quoted_key)] @name) @key)
(document (table . [(bare_key) (dotted_key) (quoted_key)] @name) @key)
(document (table_array_element . [(bare_key) (dotted_key) (quoted_key)] @name) @key)

; Keys and values are data: their words refer to nothing.
(document) @text
