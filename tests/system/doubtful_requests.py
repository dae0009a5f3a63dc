"""
Requests that somebody in front of us might read in another way than we do, and requests that only look so.

The ways are those of RFC 9112 §11.2 and of published request smuggling. Where a second request could hide, one does:
it posts to C{/smuggled}.
"""

from __future__ import annotations

HIDDEN = b"POST /smuggled HTTP/1.1\r\nHost: receiver\r\nContent-Length: 0\r\n\r\n"
CHUNKED_BODY = b"5\r\nhello\r\n0\r\n\r\n"
CHUNKED = b"Transfer-Encoding: chunked"


def with_headers(*headers: bytes, body: bytes = b"", line: bytes = b"POST /in HTTP/1.1") -> bytes:
    """A request with a good C{Host} and these headers."""
    return b"\r\n".join([line, b"Host: receiver", *headers, b"", b""]) + body


def with_line(line: bytes) -> bytes:
    """A request of that first line."""
    return with_headers(b"Content-Length: 0", line=line)


def with_chunks(body: bytes) -> bytes:
    """A chunked request with that body as it goes over the wire."""
    return with_headers(CHUNKED, body=body)


def _length(value: bytes) -> bytes:
    return with_headers(b"Content-Length: " + value, body=b"hello" + HIDDEN)


def _encoded(*values: bytes) -> bytes:
    return with_headers(*(b"Transfer-Encoding: " + value for value in values), body=CHUNKED_BODY + HIDDEN)


def _host(*hosts: bytes) -> bytes:
    lines = [b"POST /in HTTP/1.1", *(b"Host: " + host for host in hosts), b"Content-Length: 0", b"", b""]
    return b"\r\n".join(lines)


#: Each is answered once, with a 4xx, and the connection ends; none becomes a message.
DOUBTFUL: dict[str, bytes] = {
    # the length of the body
    "length and chunked": with_headers(b"Content-Length: 5", CHUNKED, body=CHUNKED_BODY + HIDDEN),
    "chunked and length": with_headers(CHUNKED, b"Content-Length: 5", body=CHUNKED_BODY + HIDDEN),
    "chunked and length 0": with_headers(CHUNKED, b"Content-Length: 0", body=CHUNKED_BODY + HIDDEN),
    "two equal lengths": with_headers(b"Content-Length: 5", b"Content-Length: 5", body=b"hello" + HIDDEN),
    "two lengths": with_headers(b"Content-Length: 5", b"Content-Length: 0", body=b"hello" + HIDDEN),
    "two lengths apart": with_headers(b"Content-Length: 0", b"X: y", b"content-length: 5", body=b"hello" + HIDDEN),
    "list of equal lengths": _length(b"5, 5"),
    "list of lengths": _length(b"5, 0"),
    "length with plus": _length(b"+5"),
    "length with minus": _length(b"-5"),
    "hexadecimal length": _length(b"0x5"),
    "length with underscore": _length(b"0_5"),
    "length with point": _length(b"5.0"),
    "length with parameter": _length(b"5;q=1"),
    "length with blank inside": _length(b"5 0"),
    "length with vertical tab": _length(b"5\x0b"),
    "length with form feed": _length(b"\x0c5"),
    "length in quotes": _length(b'"5"'),
    "empty length": _length(b""),
    "length in words": _length(b"five"),
    "length in Arabic digits": _length("٥".encode()),
    "length of a superscript": _length(b"\xb2"),
    "length past 64 bits": _length(b"18446744073709551621"),
    "length of 31 digits": _length(b"1" + b"0" * 30),
    "length of 4,400 digits": _length(b"1" * 4400),
    "length of a NUL": _length(b"5\x00"),
    "blank before the colon of a length": with_headers(b"Content-Length : 5", body=b"hello" + HIDDEN),
    # how the body is encoded
    "identity": _encoded(b"identity"),
    "identity and length": with_headers(b"Transfer-Encoding: identity", b"Content-Length: 5", body=b"hello" + HIDDEN),
    "chunked twice": _encoded(b"chunked, chunked"),
    "gzip, chunked": _encoded(b"gzip, chunked"),
    "chunked, gzip": _encoded(b"chunked, gzip"),
    "chunked, identity": _encoded(b"chunked, identity"),
    "gzip alone": _encoded(b"gzip"),
    "xchunked": _encoded(b"xchunked"),
    "chunked with parameter": _encoded(b"chunked;q=1"),
    "chunked in quotes": _encoded(b'"chunked"'),
    "chunked with a blank": _encoded(b"chu nked"),
    "chunked with a comma before": _encoded(b", chunked"),
    "chunked with a comma behind": _encoded(b"chunked,"),
    "chunked after a vertical tab": _encoded(b"\x0bchunked"),
    "chunked before a NUL": _encoded(b"chunked\x00"),
    "empty encoding": _encoded(b""),
    "empty encoding and length": with_headers(b"Transfer-Encoding:", b"Content-Length: 5", body=b"hello" + HIDDEN),
    "two chunked": _encoded(b"chunked", b"chunked"),
    "chunked, then identity": _encoded(b"chunked", b"identity"),
    "identity, then chunked": _encoded(b"identity", b"chunked"),
    "chunked on HTTP/1.0": with_headers(CHUNKED, body=CHUNKED_BODY + HIDDEN, line=b"POST /in HTTP/1.0"),
    "chunked and length on HTTP/1.0": with_headers(
        CHUNKED, b"Content-Length: 5", body=CHUNKED_BODY + HIDDEN, line=b"POST /in HTTP/1.0"
    ),
    "blank before the colon": with_headers(b"Transfer-Encoding : chunked", body=CHUNKED_BODY + HIDDEN),
    "tab before the colon": with_headers(b"Transfer-Encoding\t: chunked", body=CHUNKED_BODY + HIDDEN),
    "folded encoding": with_headers(b"Transfer-Encoding:\r\n chunked", body=CHUNKED_BODY + HIDDEN),
    "encoding folded by a tab": with_headers(b"Transfer-Encoding:\r\n\tchunked", body=CHUNKED_BODY + HIDDEN),
    "encoding on a folded line": with_headers(b"X: y\r\n Transfer-Encoding: chunked", body=CHUNKED_BODY + HIDDEN),
    "encoding after a bare CR": with_headers(b"X: y\rTransfer-Encoding: chunked", body=CHUNKED_BODY + HIDDEN),
    "encoding after a bare LF": with_headers(b"X: y\nTransfer-Encoding: chunked", body=CHUNKED_BODY + HIDDEN),
    "encoding after CR CR LF": with_headers(b"X: y\r\r\nTransfer-Encoding: chunked", body=CHUNKED_BODY + HIDDEN),
    "encoding with a high byte": with_headers(b"Transfer-Encoding\xff: chunked", body=CHUNKED_BODY + HIDDEN),
    # who is meant
    "no host": _host(),
    "two hosts": _host(b"receiver", b"other"),
    "two equal hosts": _host(b"receiver", b"receiver"),
    "host with a blank": _host(b"a b"),
    "host with a slash": _host(b"receiver/x"),
    "host with a question mark": _host(b"receiver?"),
    "host with a fragment": _host(b"receiver#"),
    "host with a user": _host(b"user@receiver"),
    "list of hosts": _host(b"a, b"),
    "host with a port in words": _host(b"receiver:http"),
    "host with a long port": _host(b"receiver:99999999"),
    "host with an open bracket": _host(b"[::1"),
    "host with a high byte": _host(b"r\xe9ceiver"),
    # the request line
    "blank first": with_line(b" POST /in HTTP/1.1"),
    "two blanks": with_line(b"POST  /in HTTP/1.1"),
    "two blanks behind the target": with_line(b"POST /in  HTTP/1.1"),
    "tab": with_line(b"POST\t/in HTTP/1.1"),
    "tab behind the target": with_line(b"POST /in\tHTTP/1.1"),
    "blank last": with_line(b"POST /in HTTP/1.1 "),
    "blank in the target": with_line(b"POST /in /x HTTP/1.1"),
    "no version": b"POST /in\r\n\r\n",
    "no target": with_line(b"POST HTTP/1.1"),
    "only a method": b"POST\r\n\r\n",
    "version in lower case": with_line(b"POST /in http/1.1"),
    "HTTP/0.9": with_line(b"POST /in HTTP/0.9"),
    "HTTP/1.2": with_line(b"POST /in HTTP/1.2"),
    "HTTP/1.10": with_line(b"POST /in HTTP/1.10"),
    "HTTP/01.1": with_line(b"POST /in HTTP/01.1"),
    "HTTP/2.0": with_line(b"POST /in HTTP/2.0"),
    "HTTP/1.": with_line(b"POST /in HTTP/1."),
    "HTTPS/1.1": with_line(b"POST /in HTTPS/1.1"),
    "ICE/1.0": with_line(b"SOURCE /in ICE/1.0"),
    "RTSP/1.0": with_line(b"DESCRIBE /in RTSP/1.0"),
    "method with a parenthesis": with_line(b"PO(ST /in HTTP/1.1"),
    "method of 33 bytes": with_line(b"P" * 33 + b" /in HTTP/1.1"),
    "method of 10,000 bytes": with_line(b"P" * 10_000 + b" /in HTTP/1.1"),
    "an answer": b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    "the preface of HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "a TLS ClientHello": b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00",
    "LF LF first": b"\n\n" + with_line(b"POST /in HTTP/1.1"),
    "CR first": b"\r" + with_line(b"POST /in HTTP/1.1"),
    # the target
    "target without slash": with_line(b"POST in HTTP/1.1"),
    "star": with_line(b"POST * HTTP/1.1"),
    "CONNECT": with_line(b"CONNECT receiver:80 HTTP/1.1"),
    "CONNECT to a path": with_line(b"CONNECT /in HTTP/1.1"),
    "another scheme": with_line(b"POST ftp://receiver/in HTTP/1.1"),
    "https on a plain port": with_line(b"POST https://receiver/in HTTP/1.1"),
    "one slash after the scheme": with_line(b"POST http:/in HTTP/1.1"),
    "no authority": with_line(b"POST http:///in HTTP/1.1"),
    "user in the authority": with_line(b"POST http://user@receiver/in HTTP/1.1"),
    "fragment": with_line(b"POST /in#x HTTP/1.1"),
    "NUL in the target": with_line(b"POST /in\x00 HTTP/1.1"),
    "control character in the target": with_line(b"POST /in\x01 HTTP/1.1"),
    "DEL in the target": with_line(b"POST /in\x7f HTTP/1.1"),
    "high byte in the target": with_line(b"POST /in\xff HTTP/1.1"),
    "bare CR in the target": with_line(b"POST /in\r HTTP/1.1"),
    "bare LF in the target": with_line(b"POST /in\n HTTP/1.1"),
    "target of 9,000 bytes": with_line(b"POST /" + b"a" * 9000 + b" HTTP/1.1"),
    # header lines
    "line without colon": with_headers(b"nonsense", b"Content-Length: 0"),
    "line without name": with_headers(b": x", b"Content-Length: 0"),
    "blank in a name": with_headers(b"X Y: z", b"Content-Length: 0"),
    "NUL in a name": with_headers(b"X\x00Y: z", b"Content-Length: 0"),
    "high byte in a name": with_headers(b"X\xe9: z", b"Content-Length: 0"),
    "parenthesis in a name": with_headers(b"X(Y): z", b"Content-Length: 0"),
    "NUL in a value": with_headers(b"X: y\x00z", b"Content-Length: 0"),
    "control character in a value": with_headers(b"X: y\x01z", b"Content-Length: 0"),
    "DEL in a value": with_headers(b"X: y\x7fz", b"Content-Length: 0"),
    "bare CR in a value": with_headers(b"X: y\rz", b"Content-Length: 0"),
    "bare LF in a value": with_headers(b"X: y\nz", b"Content-Length: 0"),
    "folded line": with_headers(b"X: y\r\n z", b"Content-Length: 0"),
    "line folded by a tab": with_headers(b"X: y\r\n\tz", b"Content-Length: 0"),
    "folded first line": b"POST /in HTTP/1.1\r\n Host: receiver\r\nContent-Length: 0\r\n\r\n",
    "LF alone everywhere": b"POST /in HTTP/1.1\nHost: receiver\nContent-Length: 0\n\n",
    "LF alone at the end": b"POST /in HTTP/1.1\r\nHost: receiver\r\nContent-Length: 0\r\n\n" + HIDDEN,
    "LF alone before the end": b"POST /in HTTP/1.1\r\nHost: receiver\r\nContent-Length: 0\n\r\n" + HIDDEN,
    "CR alone everywhere": b"POST /in HTTP/1.1\rHost: receiver\rContent-Length: 0\r\r" + HIDDEN,
    "101 headers": with_headers(*[b"X: y"] * 99, b"Content-Length: 0"),
    "17 KiB of headers": with_headers(b"X: " + b"y" * 17 * 1024, b"Content-Length: 0"),
    "unknown expectation": with_headers(b"Expect: 200-ok", b"Content-Length: 5", body=b"hello"),
    # chunks
    "chunk size in C": with_chunks(b"0x5\r\nhello\r\n0\r\n\r\n" + HIDDEN),
    "chunk size with plus": with_chunks(b"+5\r\nhello\r\n0\r\n\r\n" + HIDDEN),
    "chunk size with minus": with_chunks(b"-5\r\nhello\r\n0\r\n\r\n" + HIDDEN),
    "chunk size minus zero": with_chunks(b"5\r\nhello\r\n-0\r\n\r\n" + HIDDEN),
    "chunk size with underscore": with_chunks(b"0_5\r\nhello\r\n0\r\n\r\n" + HIDDEN),
    "chunk size with a blank before": with_chunks(b" 5\r\nhello\r\n0\r\n\r\n" + HIDDEN),
    "chunk size with a blank behind": with_chunks(b"5 \r\nhello\r\n0\r\n\r\n" + HIDDEN),
    "chunk size with a tab behind": with_chunks(b"5\t\r\nhello\r\n0\r\n\r\n" + HIDDEN),
    "no chunk size": with_chunks(b"\r\nhello\r\n0\r\n\r\n" + HIDDEN),
    "no chunk size but an extension": with_chunks(b";a=b\r\nhello\r\n0\r\n\r\n" + HIDDEN),
    "chunk size in words": with_chunks(b"five\r\nhello\r\n0\r\n\r\n" + HIDDEN),
    "chunk size past 64 bits": with_chunks(b"10000000000000005\r\nhello\r\n0\r\n\r\n" + HIDDEN),
    "chunk size of 31 digits": with_chunks(b"1" + b"0" * 30 + b"\r\nhello\r\n0\r\n\r\n" + HIDDEN),
    "chunk size before a bare LF": with_chunks(b"5\nhello\r\n0\r\n\r\n" + HIDDEN),
    "chunk size before a bare CR": with_chunks(b"5\rhello\r\n0\r\n\r\n" + HIDDEN),
    "chunk before a bare LF": with_chunks(b"5\r\nhello\n0\r\n\r\n" + HIDDEN),
    "chunk longer than its size": with_chunks(b"4\r\nhello\r\n0\r\n\r\n" + HIDDEN),
    "chunk shorter than its size": with_chunks(b"6\r\nhello\r\n0\r\n\r\n" + HIDDEN),
    "chunk without CRLF": with_chunks(b"5\r\nhello0\r\n\r\n" + HIDDEN),
    "bare LF in a chunk extension": with_chunks(b"5;a\nb\r\nhello\r\n0\r\n\r\n" + HIDDEN),
    "bare CR in a chunk extension": with_chunks(b"5;a\rb\r\nhello\r\n0\r\n\r\n" + HIDDEN),
    "NUL in a chunk extension": with_chunks(b"5;a\x00b\r\nhello\r\n0\r\n\r\n" + HIDDEN),
    "line end in a quoted chunk extension": with_chunks(b'5;a="\r\n"\r\nhello\r\n0\r\n\r\n' + HIDDEN),
    "last chunk before a bare LF": with_chunks(b"5\r\nhello\r\n0\n\r\n" + HIDDEN),
    "end of a bare LF": with_chunks(b"5\r\nhello\r\n0\r\n\n" + HIDDEN),
    "folded trailer": with_chunks(b"5\r\nhello\r\n0\r\nA: b\r\n c\r\n\r\n" + HIDDEN),
    "trailer without colon": with_chunks(b"5\r\nhello\r\n0\r\nnonsense\r\n\r\n" + HIDDEN),
    "trailer with a blank in its name": with_chunks(b"5\r\nhello\r\n0\r\nA B: c\r\n\r\n" + HIDDEN),
    "trailer before a bare LF": with_chunks(b"5\r\nhello\r\n0\r\nA: b\n\r\n" + HIDDEN),
    "trailer that would frame": with_chunks(b"5\r\nhello\r\n0\r\nContent-Length: 99\r\n\r\n" + HIDDEN),
    "200 KiB of chunk extension": with_chunks(b"5;" + b"a" * 200 * 1024 + b"\r\nhello\r\n0\r\n\r\n" + HIDDEN),
    "200 KiB of trailer": with_chunks(b"5\r\nhello\r\n0\r\nA: " + b"a" * 200 * 1024 + b"\r\n\r\n" + HIDDEN),
}

#: Each is one request with the body C{hello}, however odd it looks, and becomes one message.
ODD: dict[str, bytes] = {
    "an empty line first": b"\r\n" + with_headers(b"Content-Length: 5", body=b"hello"),
    "length with zeros": with_headers(b"Content-Length: 0005", body=b"hello"),
    "white space around a length": with_headers(b"Content-Length: \t 5 \t", body=b"hello"),
    "no white space": with_headers(b"Content-Length:5", body=b"hello"),
    "names in lower case": with_headers(b"content-length: 5", body=b"hello"),
    "CHUNKED": with_headers(b"TRANSFER-ENCODING: CHUNKED", body=CHUNKED_BODY),
    "white space around chunked": with_headers(b"Transfer-Encoding: \t chunked ", body=CHUNKED_BODY),
    "one byte a chunk": with_chunks(b"1\r\nh\r\n1\r\ne\r\n1\r\nl\r\n1\r\nl\r\n1\r\no\r\n0\r\n\r\n"),
    "chunk size with zeros": with_chunks(b"00005\r\nhello\r\n000\r\n\r\n"),
    "chunk extension": with_chunks(b'5;a=b;c="d;e"\r\nhello\r\n0;x\r\n\r\n'),
    "trailer": with_chunks(b"5\r\nhello\r\n0\r\nDigest: x\r\n\r\n"),
    "empty host": b"POST /in HTTP/1.1\r\nHost:\r\nContent-Length: 5\r\n\r\nhello",
    "host with a port": b"POST /in HTTP/1.1\r\nHost: receiver:8080\r\nContent-Length: 5\r\n\r\nhello",
    "IPv6 host": b"POST /in HTTP/1.1\r\nHost: [::1]:8080\r\nContent-Length: 5\r\n\r\nhello",
    "absolute form": with_headers(b"Content-Length: 5", body=b"hello", line=b"POST http://receiver/in HTTP/1.1"),
    "no host on HTTP/1.0": b"POST /in HTTP/1.0\r\nContent-Length: 5\r\n\r\nhello",
    "100 headers": with_headers(*[b"X: y"] * 98, b"Content-Length: 5", body=b"hello"),
    "high byte in a value": with_headers(b"X: \xe9", b"Content-Length: 5", body=b"hello"),
    "tab in a value": with_headers(b"X: a\tb", b"Content-Length: 5", body=b"hello"),
    "empty value": with_headers(b"X:", b"Content-Length: 5", body=b"hello"),
    "upgrade that nobody takes": with_headers(
        b"Connection: Upgrade, HTTP2-Settings",
        b"Upgrade: h2c",
        b"HTTP2-Settings: AAMAAABkAAQ",
        b"Content-Length: 5",
        body=b"hello",
    ),
    "body like a request": with_headers(b"Content-Length: 5", body=b"hello"),
    "expectation met at once": with_headers(b"Expect: 100-continue", b"Content-Length: 5", body=b"hello"),
}
