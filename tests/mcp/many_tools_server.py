"""An MCP server on standard input and output with up to 80 tools, such as a tracker of issues has.

    many_tools_server.py COUNT [CHANGE [START]]

It has the first COUNT tools. Once the file CHANGE exists, the next call is followed by the word that the
list is another one: two tools are new and one is another. With START it waits for that file before it
answers anything, at most a minute.
"""
import json
import os
import sys
import time

VERBS = {
    "create": ("Create a new {noun} in a project. Returns the {noun} with its number and its address.", False),
    "get": ("Get one {noun} by its number, with all of its fields.", True),
    "list": ("List the {noun}s of a project, newest first. Long lists come in pages.", True),
    "update": ("Change fields of a {noun}. Fields that are left out stay as they are.", False),
    "delete": ("Delete a {noun} for good. This cannot be undone.", False),
    "search": ("Search for {noun}s whose text, author or labels match a query.", True),
    "archive": ("Put a {noun} away, so that lists leave it out. It can be restored.", False),
    "restore": ("Bring an archived {noun} back into lists.", False),
}
NOUNS = ["issue", "comment", "label", "milestone", "project", "member", "team", "attachment", "webhook", "release"]


def text(description, **more):
    return {"type": "string", "description": description, **more}


def schema(verb, noun):
    fields = {"project": text("The project's short name, as its address has it, such as web or api.")}
    required = ["project"]
    if verb in ("get", "update", "delete", "archive", "restore"):
        fields["number"] = {"type": "integer", "description": f"The number of the {noun}, from 1.", "minimum": 1}
        required.append("number")
    if verb in ("create", "update"):
        fields["title"] = text(f"What the {noun} is called, in one line of at most 200 characters.")
        fields["body"] = text(f"What there is to say about the {noun}, as Markdown.")
        fields["labels"] = {"type": "array", "items": {"type": "string"}, "description": "Names of labels to set."}
        fields["priority"] = text("How urgent it is.", enum=["low", "normal", "high", "urgent"])
        fields["assignee"] = text("Who works on it: the name that the person logs in with.")
    if verb == "create":
        required.append("title")
    if verb in ("list", "search"):
        fields["state"] = text("Which of them to show.", enum=["open", "closed", "all"], default="open")
        fields["page"] = {"type": "integer", "description": "Which page to show, from 1.", "default": 1}
        fields["per_page"] = {"type": "integer", "description": "How many there are on a page, at most 100."}
        fields["sort"] = text("What to sort by.", enum=["created", "updated", "priority", "title"])
    if verb == "search":
        fields["query"] = text("Words that must all occur. Put phrases in quotation marks; - leaves out a word.")
        required.append("query")
    return {"type": "object", "properties": fields, "required": required, "additionalProperties": False}


def tool(verb, noun, description=None):
    words, reads = VERBS.get(verb, (verb.capitalize() + " two {noun}s into one.", False))
    return {
        "name": f"{verb}_{noun}" if verb not in ("list", "search") else f"{verb}_{noun}s",
        "description": description or words.format(noun=noun),
        "inputSchema": schema(verb, noun),
        "annotations": {"readOnlyHint": reads},
    }


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def exists(index):
    return len(sys.argv) > index and os.path.exists(sys.argv[index])


def main():
    tools = [tool(verb, noun) for noun in NOUNS for verb in VERBS][: int(sys.argv[1])]
    for _ in range(600):
        if len(sys.argv) <= 3 or exists(3):
            break
        time.sleep(0.1)
    told = False
    for line in sys.stdin:
        message = json.loads(line)
        method, number = message.get("method"), message.get("id")
        if method == "initialize":
            result = {
                "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": {"tools": {"listChanged": True}},
                "serverInfo": {"name": "tracker", "version": "1"},
            }
            send({"id": number, "result": result})
        elif method == "tools/list":
            listed = list(tools)
            if exists(2):
                listed[0] = tool("create", "issue", "Create an issue. The title is all that it needs.")
                listed += [tool("merge", "issue"), tool("merge", "label")]
            send({"id": number, "result": {"tools": listed}})
        elif method == "tools/call":
            params = message["params"]
            text = f"{params['name']} {json.dumps(params.get('arguments', {}), sort_keys=True)}: done"
            send({"id": number, "result": {"content": [{"type": "text", "text": text}]}})
            if exists(2) and not told:
                told = True
                send({"method": "notifications/tools/list_changed"})
        elif number is not None:
            send({"id": number, "error": {"code": -32601, "message": "no such method"}})


main()
