"""Logs as lines of JSON. A line names a route, a status and a token by its id; never a query, a text, a header or a secret."""

import json
import logging
import time

from memory_mesh.core.model import iso

LOG = logging.getLogger("memory_mesh.server")
_MAX_MESSAGE = 2000


class JsonLines(logging.Formatter):
    """Format a record as one line of JSON, with its message masked as memories are."""

    def format(self, record: logging.LogRecord) -> str:
        from memory_mesh.core.redaction import masked

        line: dict[str, object] = {"time": iso(int(record.created * 1000)), "level": record.levelname.lower()}
        line |= getattr(record, "fields", {})
        if message := record.getMessage():
            line["message"] = masked(message[:_MAX_MESSAGE])
        if record.exc_info and record.exc_info[0]:
            line["error"] = record.exc_info[0].__name__  # its text may quote a memory
            line["at"] = _places(record.exc_info[1])
        return json.dumps(line, ensure_ascii=True)


def write_json_lines() -> logging.Handler:
    """Write the logs of the server and of memory-mesh to standard error, one object a line. Returns the handler."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines())
    for name, level in (("memory_mesh", logging.INFO), ("uvicorn", logging.WARNING)):
        log = logging.getLogger(name)
        log.addHandler(handler)
        log.setLevel(level)
    return handler


def request_line(request_id: str, method: str, route: str, status: int, caller: str, began: float) -> None:
    """Log a request that has ended."""
    ms = round((time.perf_counter() - began) * 1000, 2)
    fields = {"request_id": request_id, "method": method, "route": route, "status": status, "caller": caller, "ms": ms}
    LOG.info("", extra={"fields": fields})


def _places(error: BaseException | None) -> list[str]:
    """Return the functions in which an error was raised, outermost first."""
    places, trace = [], error.__traceback__ if error else None
    while trace:
        code = trace.tb_frame.f_code
        places.append(f"{code.co_filename.rpartition('/')[2]}:{trace.tb_lineno} {code.co_name}")
        trace = trace.tb_next
    return places[-10:]
