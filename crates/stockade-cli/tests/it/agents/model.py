"""A model that asks for shell commands and then says goodbye, on loopback.

Speaks the protocols of real agents: Anthropic messages, OpenAI responses and chat completions, Gemini
generateContent; each whole or as a stream.

usage: model.py LOG COMMANDS [CERTIFICATE KEY]

An empty line separates one command from the next.

Prints its port. Appends one JSON line for each request to LOG: path, key (the credential in the headers),
tools (offered to the model), result (what the tool call printed, once the agent sends it) and answer (call or text).
With a certificate it speaks TLS. Ends when its standard input ends.
"""

import http.server
import json
import re
import ssl
import sys
import threading

# Name of the tool that runs shell commands, by agent, and the arguments that it wants.
SHELL_TOOLS = {
    "Bash": lambda command: {"command": command, "description": "the scripted call"},
    "bash": lambda command: {"command": command, "description": "the scripted call"},
    "exec_command": lambda command: {"cmd": command},
    "run_shell_command": lambda command: {"command": command, "is_background": False},
    "shell": lambda command: {"command": ["bash", "-c", command]},
    "shell_command": lambda command: {"command": command},
}
GOODBYE = "goodbye"
# For agents without tools: the model writes a file, in aider's format for whole files.
EDIT = "touched.txt\n```\ntouched\n```\n"


class Model(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.write_log("text", {}, None)
        self.send_json({"data": [], "models": []})

    def do_HEAD(self):
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_POST(self):
        body = self.read_body()
        try:
            request = json.loads(body or b"{}")
        except ValueError:
            request = {}
        path = self.path.split("?")[0]
        for pattern, answer in ROUTES:
            if re.search(pattern, path):
                return answer(self, request)
        self.write_log("text", request, None)
        self.send_json({})

    def read_body(self):
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def anthropic(self, request):
        tools = [tool.get("name") for tool in request.get("tools", [])]
        results = [
            part.get("content")
            for message in request["messages"]
            if isinstance(message["content"], list)
            for part in message["content"]
            if part.get("type") == "tool_result"
        ]
        tool = self.choose(request, tools, results)
        message = {
            "id": "msg_1", "type": "message", "role": "assistant", "model": request.get("model"),
            "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1},
        }
        if tool:
            block = {"type": "tool_use", "id": f"toolu_{self.next_command}", "name": tool, "input": self.arguments(tool)}
            reason = "tool_use"
        else:
            block, reason = {"type": "text", "text": GOODBYE}, "end_turn"
        if not request.get("stream"):
            return self.send_json({**message, "content": [block], "stop_reason": reason})
        if tool:
            empty = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        else:
            empty, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": GOODBYE}
        events = [
            {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}},
            {"type": "content_block_start", "index": 0, "content_block": empty},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {
                "type": "message_delta",
                "delta": {"stop_reason": reason, "stop_sequence": None},
                "usage": {"output_tokens": 1},
            },
            {"type": "message_stop"},
        ]
        self.send_events(events)

    def count_tokens(self, request):
        self.write_log("text", request, None)
        self.send_json({"input_tokens": 1, "totalTokens": 1})

    def openai_responses(self, request):
        tools = [tool.get("name") for tool in request.get("tools", [])]
        items = request.get("input", [])
        items = items if isinstance(items, list) else []
        results = [item.get("output") for item in items if item.get("type") == "function_call_output"]
        tool = self.choose(request, tools, results)
        if tool:
            item = {
                "type": "function_call", "id": f"fc_{self.next_command}", "call_id": f"call_{self.next_command}", "name": tool,
                "arguments": json.dumps(self.arguments(tool)), "status": "completed",
            }
        else:
            text = {"type": "output_text", "text": GOODBYE, "annotations": []}
            item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [text]}
        usage = {
            "input_tokens": 1, "output_tokens": 1, "total_tokens": 2,
            "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0},
        }
        response = {
            "id": "resp_1", "object": "response", "created_at": 1, "model": request.get("model"),
            "status": "completed", "output": [item], "usage": usage,
        }
        if not request.get("stream"):
            return self.send_json(response)
        events = [
            {"type": "response.created", "response": {**response, "status": "in_progress", "output": []}},
            {"type": "response.output_item.added", "output_index": 0, "item": item},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": response},
        ]
        self.send_events(events)

    def openai_chat(self, request):
        tools = [tool["function"]["name"] for tool in request.get("tools", [])]
        messages = request["messages"]
        results = [message.get("content") for message in messages if message["role"] == "tool"]
        tool = self.choose(request, tools, results)
        if tool:
            function = {"name": tool, "arguments": json.dumps(self.arguments(tool))}
            call = {"id": f"call_{self.next_command}", "type": "function", "function": function}
            message, reason = {"role": "assistant", "content": None, "tool_calls": [{**call, "index": 0}]}, "tool_calls"
        else:
            asks_for_edit = not tools and "touch it" in json.dumps(messages[-1]) and "aider" not in self.server.said
            if asks_for_edit:
                self.server.said.add("aider")
            text = EDIT if asks_for_edit else GOODBYE
            message, reason = {"role": "assistant", "content": text}, "stop"
        whole = {"id": "chat_1", "created": 1, "model": request.get("model"), "usage": {
            "prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2,
        }}
        if not request.get("stream"):
            choice = {"index": 0, "message": message, "finish_reason": reason}
            return self.send_json({**whole, "object": "chat.completion", "choices": [choice]})
        kind = {**whole, "object": "chat.completion.chunk"}
        choices = [{"index": 0, "delta": message, "finish_reason": None}], [{"index": 0, "delta": {}, "finish_reason": reason}]
        self.send_events([{**kind, "choices": choice} for choice in choices], named=False, end="[DONE]")

    def gemini(self, request):
        declared = [tool.get("functionDeclarations", []) for tool in request.get("tools", [])]
        tools = [function["name"] for functions in declared for function in functions]
        parts = [part for content in request.get("contents", []) for part in content.get("parts", [])]
        results = [part["functionResponse"]["response"] for part in parts if "functionResponse" in part]
        tool = self.choose(request, tools, results)
        if tool:
            part = {"functionCall": {"name": tool, "args": self.arguments(tool)}}
        elif "application/json" in json.dumps(request.get("generationConfig", {})):
            # Questions of the agent to itself, such as which model to use.
            part = {"text": json.dumps({"complexity_reasoning": "", "complexity_score": 1, "next_speaker": "user"})}
        else:
            part = {"text": GOODBYE}
        answer = {
            "candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}],
            "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
            "modelVersion": "test",
        }
        if "stream" in self.path:
            return self.send_events([answer], named=False)
        self.send_json(answer)

    def choose(self, request, tools, results):
        """The tool to call, if one is offered and commands are left."""
        tool = next((tool for tool in tools if tool in SHELL_TOOLS), None)
        calls = tool is not None and len(results) < len(self.server.commands)
        self.next_command = len(results)
        self.write_log("call" if calls else "text", request, results[-1] if results else None, tools)
        return tool if calls else None

    def arguments(self, tool):
        return SHELL_TOOLS[tool](self.server.commands[self.next_command])

    def write_log(self, answer, request, result, tools=()):
        bearer = self.headers.get("Authorization", "").removeprefix("Bearer ")
        query = re.search(r"[?&]key=([^&]*)", self.path)
        key = self.headers.get("x-api-key") or self.headers.get("x-goog-api-key") or bearer or (query and query[1])
        line = {"path": self.path, "key": key, "tools": list(tools), "answer": answer, "result": result}
        with self.server.lock, open(self.server.log, "a", encoding="utf-8") as log:
            log.write(json.dumps(line) + "\n")

    def send_json(self, document):
        body = json.dumps(document).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def send_events(self, events, named=True, end=None):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for event in events:
            name = f"event: {event['type']}\n" if named else ""
            self.send_chunk(f"{name}data: {json.dumps(event)}\n\n")
        if end:
            self.send_chunk(f"data: {end}\n\n")
        self.send_chunk("")

    def send_chunk(self, text):
        data = text.encode()
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def log_message(self, *_):
        pass


ROUTES = [
    (r"/messages/count_tokens$|:countTokens$", Model.count_tokens),
    (r"/messages$", Model.anthropic),
    (r"/responses$", Model.openai_responses),
    (r"/chat/completions$", Model.openai_chat),
    (r":(streamGenerateContent|generateContent)$", Model.gemini),
]


def main():
    log, commands, *certificate = sys.argv[1:]
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
    server.daemon_threads = True
    server.log, server.commands, server.lock, server.said = log, commands.split("\n\n"), threading.Lock(), set()
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)
        # The handshake is the thread's, so that a silent client keeps nobody else waiting.
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_address[1], flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
