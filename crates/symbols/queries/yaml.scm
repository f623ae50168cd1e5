(document (block_node (block_mapping (block_mapping_pair key: (_) @name) @key)))
(document (flow_node (flow_mapping (flow_pair key: (_) @name) @key)))

; Keys and values are data: their words refer to nothing.
(stream) @text
