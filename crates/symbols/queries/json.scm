(document (object (pair key: (string) @name) @key))

; Keys and values are data: their words refer to nothing.
(document) @text
