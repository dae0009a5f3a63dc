"""
The pages in docs/how-to/senders/: what to enter at a sender and here, made from the data files of senders.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhookrx.quantities import format_duration, parse_duration
from webhookrx.senders.definition import SenderDefinition
from webhookrx.senders.definitions import builtin_definitions
from webhookrx.senders.handshakes.costs import cost_of_refusal
from webhookrx.senders.signatures.code_verifiers import WITHOUT_SECRETS
from webhookrx.senders.signatures.scheme import SignatureScheme

PAGES: Final = {
    "code": "bitbucket forgejo gitea github gitlab gogs huggingface jira linear trello",
    "builds": "buildkite circleci heroku-webhooks netlify nexus npm sonarqube terraform travis vercel vercel-webhooks",
    "monitors": "alertmanager cloudflare-notifications cloudflare-stream doppler grafana launchdarkly meraki "
    "mongodb-atlas pagerduty sentry tailscale",
    "clouds": "aws-firehose aws-sns azure-event-grid cloudevents cloudevents-binary cloudflare-logpush "
    "cloudflare-logpush-datasets cloudflare-logpush-firewall fastly google-pubsub microsoft-graph",
    "identity": "auth0 box dropbox monday okta segment smartcar standard-webhooks strava workos",
    "payments": "adyen adyen-platform ebay paddle paypal shopify square stripe tebex wise xero",
    "messages": "customer-io line mailchimp mailgun postmark ringcentral sendgrid telegram telnyx twilio",
    "chat": "discord front intercom meta ms-teams-outgoing slack twitch x zendesk zoom",
    "work": "adobe-sign airtable asana calendly contentful docusign hubspot linkedin notion typeform",
}
"""Name of a page to the ids of its senders, about ten each."""

_ALGORITHMS: Final = {
    "ed25519": "Ed25519 signature",
    "ecdsa-sha256": "ECDSA signature, by SHA-256,",
    "rsa-sha1": "RSA signature, by SHA-1,",
    "rsa-sha256": "RSA signature, by SHA-256,",
    "rsa-sha512": "RSA signature, by SHA-512,",
}
_ENCODINGS: Final = {"": "hexadecimal", "hex": "hexadecimal", "base64": "Base64", "base64url": "Base64 for URLs"}
_CODE: Final = {
    "adyen": "HMAC-SHA256 of eight members of each notification, in its `additionalData.hmacSignature`; all must hold",
    "contentful": "HMAC-SHA256 of method, path, listed headers and body",
    "jwt": "a token (JWT)",
    "paypal": "RSA signature of id, time, webhook id and checksum of the body, by PayPal's certificate",
    "sns": "RSA signature in the body, by Amazon's certificate; the topic must be one of `topics`",
    "twilio": "HMAC of the URL and the fields of a form, or of the URL with the digest of the body in it",
}
_KEYS: Final = {
    "base64": "Base64",
    "hex": "hexadecimal digits",
    "whsec": "of the form `whsec_…`",
    "whpk": "of the form `whpk_…`, a public key",
    "pem": "a public key in PEM, in a file: `NAME = @FILE`",
}


def sender_page(name: str) -> str:
    """Return the sections of a page: one for each of its senders, by id."""
    entries = {entry.id: entry for entry in builtin_definitions()}
    return "\n".join(_section(entries[each]) for each in PAGES[name].split())


def page_list() -> str:
    """Return the list of the pages, with links to each sender."""
    lines = []
    for name, ids in PAGES.items():
        links = ", ".join(f"[`{each}`](senders/{name}.md#{each})" for each in ids.split())
        lines.append(f"- [{name.capitalize()}](senders/{name}.md): {links}\n")
    return "".join(lines)


def source_lines(entry: SenderDefinition) -> list[str]:
    """Return a source for a sender, as lines of YAML."""
    paths = "[/fastly, /.well-known/fastly/logging/challenge]" if entry.id == "fastly" else f"/{entry.id}"
    lines = [f"- name: {entry.id}", f"  paths: {paths}", f"  sender: {entry.id}"]
    if takes_secrets(entry):
        lines.append(f"  secrets_file: /run/credentials/webhookrx.service/{entry.id}")
    if not entry.schemes:
        lines.append(f"  auth_token_file: /run/credentials/webhookrx.service/{entry.id}-token")
        if "query:NAME" in " ".join(entry.setup):
            lines.append("  auth_token_in: query:token")
    if _signs_url(entry):
        lines.append("  public_url: https://logs.example:8443")
    checked = " ".join(str(scheme.claims) for scheme in entry.schemes)
    needed = [name for name, each in entry.settings.items() if each.needed or f"{{setting:{name}}}" in checked]
    if needed:
        made_up = entry.signing[0].settings
        lines.append("  sender_settings:")
        for name in needed:
            value = made_up[name]
            lines.append(f"    {name}: {value if isinstance(value, str) else '[' + ', '.join(value) + ']'}")
    return lines


def takes_secrets(entry: SenderDefinition) -> bool:
    """Tell whether a source for a sender has a secrets file."""
    return any(scheme.code not in WITHOUT_SECRETS and not needs_keys(scheme) for scheme in entry.schemes) or any(
        each.equal or (each.proof and "{secret}" in each.proof.of) for each in entry.handshake
    )


def needs_keys(scheme: SignatureScheme) -> bool:
    """Tell whether a scheme takes public keys that the sender publishes, and changes."""
    return scheme.code in WITHOUT_SECRETS or any(not name.startswith("HS") for name in scheme.algorithms)


def _section(entry: SenderDefinition) -> str:
    lines = [f"## {entry.id}", "", f"[{entry.description.removesuffix('.')}]({entry.source}).", ""]
    lines += [*entry.setup, "", "```yaml", *source_lines(entry), "```", ""]
    lines += [f"- {fact}" for fact in _facts(entry)]
    return "\n".join([*lines, ""])


def _facts(entry: SenderDefinition) -> Iterator[str]:
    for scheme in entry.schemes:
        condition = f" With `{scheme.setting}: yes`." if scheme.setting else ""
        yield f"*Proof:* {_proof(scheme)}.{condition}"
    if not entry.schemes:
        yield "*Proof:* none; the token is all there is."
    if any(needs_keys(scheme) for scheme in entry.schemes):
        yield (
            "*Keys:* in files of `signing_certs`, or fetched from the sender's own hosts with `fetch_keys: yes`, both "
            "at the top level. Without a key the answer is 503, so that the sender tries again."
        )
    for name, setting in entry.settings.items():
        yield f"*Setting `{name}`*{'' if setting.needed else ', optional'}: {setting.meaning}"
    if entry.delivery:
        yield f"*Delivery id:* {_places(entry.delivery)}." + (
            f" *Attempt:* {_places((entry.attempt,))}." if entry.attempt else ""
        )
    elif entry.attempt:
        yield f"*Delivery id:* none. *Attempt:* {_places((entry.attempt,))}."
    else:
        yield "*Delivery id:* none, so that what comes again is another message."
    behaviour = entry.behaviour
    deadline = "not known" if behaviour is None or not behaviour.deadline else behaviour.deadline
    unconfirmed = " (not confirmed)" if behaviour is not None and "deadline" in behaviour.unconfirmed else ""
    yield f"*Waits for an answer:* {deadline}{unconfirmed}. *Refusals:* {cost_of_refusal(entry)}"
    if entry.handshake:
        kinds = ", ".join(dict.fromkeys(f"`{each.kind}`" for each in entry.handshake))
        yield f"*[Questions](../../reference/handshakes.md)* that are answered, and not stored: {kinds}."
    if entry.splits:
        yield "*Batches:* [`split: yes`](../../reference/splitting.md) makes a message of each event."


def _proof(scheme: SignatureScheme) -> str:
    where = _places(scheme.places)
    if scheme.code:
        return _CODE[scheme.code] + (f", in {where}" if where else "")
    behind = f" behind `{scheme.prefix}`" if scheme.prefix else ""
    if scheme.algorithm == "equal":
        return f"the secret itself in {where}" + (f", in Base64{behind}" if scheme.encoding == "base64" else "")
    kind = _ALGORITHMS.get(scheme.algorithm) or scheme.algorithm.replace("hmac-sha", "HMAC-SHA")
    items = f" as item `{scheme.signature}`" if scheme.signature else ""
    text = f"{kind} of `{scheme.signed}` in {where}{items}, {_ENCODINGS[scheme.encoding]}{behind}"
    if scheme.time:
        away = format_duration(parse_duration(scheme.tolerance))
        text += f"; signed at most {away} before or after now"
    if scheme.key in _KEYS:
        text += f". The secret is {_KEYS[scheme.key]}"
    return text


def _places(places: tuple[str, ...]) -> str:
    return " or ".join(map(_place, places))


def _place(place: str) -> str:
    kind, colon, name = place.partition(":")
    if not colon:
        return f"`{place}` of the body"
    return f"{'header' if kind == 'header' else 'query parameter'} `{name}`"


def _signs_url(entry: SenderDefinition) -> bool:
    return any("{url}" in scheme.signed or scheme.code == "twilio" for scheme in entry.schemes) or any(
        each.proof and "{url}" in each.proof.of for each in entry.handshake
    )
