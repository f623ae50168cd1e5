//! Content as styled lines: Markdown, diffs, tool calls, the rows of views.
