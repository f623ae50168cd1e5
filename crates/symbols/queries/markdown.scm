; A section begins with its heading and holds the sections below it.
(section . (atx_heading heading_content: (inline) @name)) @heading
(setext_heading heading_content: (paragraph (inline) @name)) @heading

; Prose refers to nothing.
(document) @text
