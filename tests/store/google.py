"""A translator before fake-gcs-server, of the requests that it does not know: ``google.py URL PORT``.

The library writes and copies objects by the XML API (``PUT /bucket/name``), of which fake-gcs-server has all but that; what
it is to do, and under which condition, it is told here by the JSON API. It lists from the first name on; where the library asks
for those after a name (``start-after``), the others are taken out here.
"""

from __future__ import annotations

import json
import re
import sys
from html import unescape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

import requests

_LISTED = r"<Contents>.*?<Key>(.*?)</Key>.*?</Contents>"
_SESSION = requests.Session()
_OF_A_CONNECTION = ("transfer-encoding", "connection", "content-encoding", "date")


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    url = ""

    def do_PUT(self) -> None:
        bucket, _, name = unquote(self.path).lstrip("/").partition("/")
        condition = self.headers.get("x-goog-if-generation-match")
        data = self.rfile.read(int(self.headers["Content-Length"]))
        if source := self.headers.get("x-goog-copy-source"):
            data = _SESSION.get(f"{self.url}/{source.lstrip('/')}", timeout=60).content
        parts = {"": (None, json.dumps({"name": name}), "application/json"), "data": (None, data, "application/octet-stream")}
        answer = _SESSION.post(
            f"{self.url}/upload/storage/v1/b/{bucket}/o",
            params={"uploadType": "multipart", **({"ifGenerationMatch": condition} if condition else {})},
            files=parts,
            timeout=30,
        )
        made = answer.json() if answer.ok else {}
        self._answer(answer.status_code, {"ETag": made.get("etag", ""), "x-goog-generation": made.get("generation", "")}, b"")

    def do_GET(self) -> None:
        headers = {name: value for name, value in self.headers.items() if name.lower() == "range"}
        answer = _SESSION.request(self.command, self.url + self.path, headers=headers, timeout=60)
        kept = {name: value for name, value in answer.headers.items() if name.lower() not in _OF_A_CONNECTION}
        [after] = parse_qs(urlsplit(self.path).query).get("start-after", [""])
        body = answer.content
        if after:
            body = re.sub(_LISTED, lambda found: found[0] if unescape(found[1]) > after else "", answer.text).encode()
            kept["Content-Length"] = str(len(body))
        self._answer(answer.status_code, kept, body)

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_DELETE(self) -> None:
        self.do_GET()

    def _answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    _Handler.url = sys.argv[1]
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), _Handler).serve_forever()
