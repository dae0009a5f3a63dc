"""
Tests for L{webhookrx.console.pages.rule_form} and L{webhookrx.console.pages.rule_rows}.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.console.api.problems import ApiFinding
from webhookrx.console.pages.form import Form
from webhookrx.console.pages.rule_form import (
    SKELETONS,
    RuleDraft,
    RuleValues,
    StepText,
    draft_in,
    draft_of,
    of_kind,
    rule_document,
    values_in,
    with_values,
)
from webhookrx.console.pages.rule_rows import acted, field_notes, is_action, written_rows
from webhookrx.management.volumes import volume_argument
from webhookrx.router.rules.rule import DEFAULT_PATHS
from webhookrx.router.rules.rules_file import read_rule
from webhookrx.router.steps.step import KINDS

RULE = """# Who may change this: the web team.
name: edge
selector: label.site = fra   # and no other
labels: {team: secops}
protocol: HTTPS
port: 8443
key-file: /etc/webhookrx/tls/key.pem
cert_file: /etc/webhookrx/tls/cert.pem
split: lines
auth_token_file: /etc/webhookrx/secrets/token
preprocessing:
  classify: yes
  classify_fallback: no
  steps:
    - set: {field: meta.version, value: 1.10}
      condition: meta.a = b
    - select: severity.number > 3
      label: loud
    - expression: |
        meta.team = "web";
        meta.more = 1;
"""

STEPS = (StepText("probe", "a = b", "probe: x"), StepText("select", "", "select: a = b"))
LABELS = st.dictionaries(st.text("ab", min_size=1), st.text("01."), max_size=2)
VALUES = st.builds(
    RuleValues,
    name=st.text("ab:#- '\"", max_size=6).map(str.strip),
    protocol=st.sampled_from(["", "HTTP", "HTTPS", "FTP"]),
    port=st.sampled_from(["", "1", "0800", "80", "x"]),
    description=st.text("ab\n: #", max_size=8).map(str.strip),
    labels=LABELS.map(lambda labels: tuple(labels.items())),
    paths=st.lists(st.sampled_from(["/a", "/b.*", "no"]), min_size=1, max_size=3).map(tuple),
    classify=st.booleans(),
    parse=st.booleans(),
    steps=st.lists(st.sampled_from(STEPS), max_size=3).map(tuple),
)


def sent(draft: RuleDraft, **changed: Any) -> list[tuple[str, str]]:
    """Return the fields that a browser sends of a form with a draft, as it is or changed."""
    values = draft.values
    names = ("name", "protocol", "port", "suffix", "key_file", "cert_file", "description", "selector")
    fields = [(name, getattr(values, name)) for name in names]
    for key, value in values.labels:
        fields += [("label_key", key), ("label_value", value)]
    fields += [("path", path) for path in values.paths]
    fields += [(name, "yes") for name in ("classify", "parse") if getattr(values, name)]
    for step in values.steps:
        fields += [("step_kind", step.kind), ("step_was", step.kind)]
        fields += [("step_condition", step.condition), ("step_yaml", step.yaml)]
    if not draft.is_readable:
        fields = [("form_off", "yes")]
    fields += [("base", draft.base), ("shown", draft.shown), ("mode", draft.side), ("yaml", draft.text)]
    fields += [("loses", "yes")] if draft.loses else []
    fields = [(name, changed.pop(name, value)) for name, value in fields]
    # Browsers send line breaks as CR LF.
    return [(name, value.replace("\n", "\r\n")) for name, value in [*fields, *changed.items()]]


def form(fields: list[tuple[str, str]]) -> Form:
    """Return a form."""
    return Form(urlencode(fields).encode())


def returned(draft: RuleDraft, **changed: Any) -> RuleDraft:
    """Return the draft of the form with a draft."""
    return draft_in(form(sent(draft, **changed)))


class RuleFormTests(SynchronousTestCase):
    """Form and YAML, each made of the other."""

    def test_fields(self) -> None:
        """The form has the fields of table 2.2, whatever way they are written in, and shows all others."""
        draft = draft_of(RULE)
        values = draft.values
        self.assertEqual(("edge", "HTTPS", "8443"), (values.name, values.protocol, values.port))
        self.assertEqual("/etc/webhookrx/tls/key.pem", values.key_file)
        self.assertEqual((("team", "secops"),), values.labels)
        self.assertEqual(DEFAULT_PATHS, values.paths)
        self.assertEqual((True, False), (values.classify, values.parse))
        self.assertEqual(StepText("set", "meta.a = b", "set:\n  field: meta.version\n  value: 1.10"), values.steps[0])
        self.assertEqual(["set", "select", "expression"], [step.kind for step in values.steps])
        for name in ("split", "auth_token_file", "classify_fallback"):
            self.assertIn(name, draft.others)
        self.assertNotIn("selector", draft.others)

    def test_unchanged(self) -> None:
        """A form that comes back as it was is the text as it was written."""
        draft = draft_of(RULE)
        self.assertEqual(draft, returned(draft))

    def test_changed_by_form(self) -> None:
        """A change in the form writes the YAML anew, says that comments go, and drops no field."""
        draft = returned(draft_of(RULE), port="9000")
        self.assertEqual(("form", True, "9000"), (draft.side, draft.loses, draft.values.port))
        self.assertNotIn("#", draft.text)
        before, after = rule_document(RULE), rule_document(draft.text)
        assert before is not None and after is not None
        self.assertEqual(before | {"port": 9000}, after)
        self.assertIn("value: 1.10", draft.text)
        again = returned(draft)
        self.assertEqual(draft, again)
        self.assertFalse(returned(draft, yaml=RULE).loses)

    def test_changed_by_yaml(self) -> None:
        """A change of the YAML is kept as it is written, and the form follows."""
        text = RULE.replace("8443", "8444 # moved")
        draft = returned(draft_of(RULE), yaml=text)
        self.assertEqual((text, "yaml", "8444", False), (draft.text, draft.side, draft.values.port, draft.loses))

    def test_both_changed(self) -> None:
        """When both were changed, nothing is taken until somebody or a script has said which counts."""
        text = RULE.replace("8443", "8444")
        draft = returned(draft_of(RULE), yaml=text, name="other")
        self.assertTrue(draft.both)
        self.assertEqual((text, "other"), (draft.text, draft.values.name))
        fields = sent(draft_of(RULE), yaml=text, name="other")
        self.assertEqual("8444", draft_in(form(fields), "yaml").values.port)
        self.assertEqual("other", draft_in(form(fields), "form").values.name)
        self.assertEqual("other", draft_in(form([*fields, ("edited", "form")])).values.name)
        self.assertFalse(draft_in(form([*fields, ("edited", "yaml")])).both)

    def test_unreadable(self) -> None:
        """YAML that can't be read is kept, while the form waits with what it was before."""
        draft = returned(draft_of(RULE), yaml="name: [\n")
        self.assertEqual(("name: [\n", RULE, False), (draft.text, draft.base, draft.is_readable))
        self.assertEqual("edge", draft.values.name)
        self.assertEqual(draft, returned(draft))
        mended = returned(draft, yaml=RULE.replace("edge", "other"))
        self.assertEqual(("other", True), (mended.values.name, mended.is_readable))

    def test_wrong_values(self) -> None:
        """What is wrong stays as it was written, in both."""
        draft = returned(draft_of(RULE), port="84x43", selector="label.site = (")
        self.assertEqual(("84x43", "label.site = ("), (draft.values.port, draft.values.selector))
        self.assertIsNone(rule_document(draft.text))
        self.assertIn("split: lines", draft.text)
        self.assertEqual(draft, returned(draft))
        mended = returned(draft, port="8443", selector="label.site = fra")
        self.assertEqual(rule_document(RULE), rule_document(mended.text))

    def test_broken_step(self) -> None:
        """A step that is no YAML is kept with its condition, and what is wrong has the place of the step."""
        draft = draft_of(RULE)
        steps = (StepText("set", "meta.a = 'x: y'", "set: {field: ["), *draft.values.steps[1:])
        broken = with_values(draft, msgspec.structs.replace(draft.values, steps=steps))
        self.assertIn("set: {field: [", broken.values.steps[0].yaml)
        self.assertIn("meta.a = ", broken.values.steps[0].yaml)
        self.assertEqual(draft.values.steps[1:], broken.values.steps[1:])
        reading = read_rule(broken.text.encode(), "")
        self.assertIn(("preprocessing", "steps", 0), [found.path for found in reading.diagnostics])
        self.assertEqual(broken, returned(broken))

    def test_empty(self) -> None:
        """A new rule is written field by field."""
        draft = returned(draft_of(""), name="edge", protocol="HTTP", port="8080")
        self.assertEqual("name: edge\nprotocol: HTTP\nport: 8080\n", draft.text)
        emptied = returned(draft, name="", port="")
        self.assertEqual("protocol: HTTP\n", emptied.text)

    def test_hostile(self) -> None:
        """Texts of any kind come back from YAML as they were written, and huge or deep ones are refused as YAML."""
        for text in ("yes", "0123", "~", "- a", "a: b", "# c", "'", '"', "{", "*x", "&y", "!!str", "é‮x", "\\n", "12"):
            draft = returned(
                draft_of("name: x\nprotocol: HTTP\nport: 1000\n"), name=text, description=f"{text}\n{text}"
            )
            self.assertEqual((text, f"{text}\n{text}"), (draft.values.name, draft.values.description), text)
        self.assertFalse(draft_of("a: " + "[" * 5000).is_readable)
        deep = returned(draft_of(RULE), step_yaml="[" * 5000)
        self.assertTrue(deep.values.steps[0].yaml.endswith("[" * 5000))

    def test_merge_keys(self) -> None:
        """A rule with anchors and aliases is changed in its fields alone."""
        text = "name: &n edge\nsuffix: *n\nprotocol: HTTP\nport: 8080\n"
        draft = returned(draft_of(text), port="8081")
        self.assertEqual(
            {"name": "edge", "suffix": "edge", "protocol": "HTTP", "port": 8081}, rule_document(draft.text)
        )
        broken = returned(draft_of(text.replace("8080", "none")), description="x")
        self.assertEqual(("edge", "edge"), (broken.values.name, broken.values.suffix))

    def test_other_kind(self) -> None:
        """A step of another kind begins with what that kind needs, and keeps what all kinds have."""
        self.assertEqual(set(KINDS), set(SKELETONS))
        self.assertEqual(
            "probe: seen\non_error: drop", of_kind("set: {field: a, value: b}\non_error: drop", "set", "probe")
        )
        self.assertEqual(SKELETONS["parse"], of_kind("[", "set", "parse"))
        for kind, text in SKELETONS.items():
            step = text.replace("\n", "\n    ")
            rule = f"name: a\nprotocol: HTTP\nport: 1024\npreprocessing:\n  classify: yes\n  steps:\n  - {step}\n"
            self.assertIsNotNone(rule_document(rule), kind)
        fields = [
            (name, "unset" if (name, value) == ("step_kind", "set") else value) for name, value in sent(draft_of(RULE))
        ]
        draft = draft_in(form(fields))
        self.assertEqual(("unset", "meta.a = b"), (draft.values.steps[0].kind, draft.values.steps[0].condition))

    @settings(max_examples=60, deadline=None)
    @given(VALUES)
    def test_round_trip(self, values: RuleValues) -> None:
        """Whatever is written in the form, right or wrong, the YAML made of it shows the same form."""
        draft = with_values(draft_of(RULE), values)
        self.assertEqual(values, msgspec.structs.replace(draft.values, steps=values.steps))
        self.assertEqual([step.kind for step in values.steps], [step.kind for step in draft.values.steps])
        self.assertEqual(values, values_in(form(sent(draft))))
        self.assertIn("split: lines", draft.text)


class RuleRowTests(SynchronousTestCase):
    """Rows, and what is said at fields."""

    def test_rows(self) -> None:
        """Rows are added, moved and taken away; what there is not is left alone."""
        values = RuleValues(labels=(("a", "b"),), paths=("/a", "/b", "/c"), steps=(StepText("probe", "", "probe: x"),))
        for do, paths in (
            ("up-path-1", ("/b", "/a", "/c")),
            ("up-path-0", ("/a", "/b", "/c")),
            ("down-path-2", ("/a", "/b", "/c")),
            ("down-path-0", ("/b", "/a", "/c")),
            ("move-path-2-0", ("/c", "/a", "/b")),
            ("move-path-0-2", ("/b", "/c", "/a")),
            ("remove-path-1", ("/a", "/c")),
            ("remove-path-7", ("/a", "/b", "/c")),
            ("add-path", ("/a", "/b", "/c", "")),
        ):
            self.assertEqual(paths, acted(values, do).paths, do)
        self.assertEqual((("a", "b"), ("", "")), acted(values, "add-label").labels)
        self.assertEqual("parse: yes", acted(values, "add-step", "parse").steps[-1].yaml)
        self.assertEqual(values, written_rows(acted(acted(values, "add-label"), "add-path")))
        for do in ("save", "", "up-name-1", "up-path-99999", "over-g3"):
            self.assertFalse(is_action(do))
            self.assertEqual(values, acted(values, do))

    def test_notes(self) -> None:
        """What is wrong is said at its field, also when empty rows are between, and the rest at the others."""
        rows = RuleValues(labels=(("", ""), ("a/b", "c")), paths=("", "/a", "", "b"), steps=(StepText(),) * 2)
        for path, at in (
            (("port",), "port"),
            (("labels", "a/b"), "label-1"),
            (("labels", "gone"), "labels"),
            (("labels",), "labels"),
            (("paths", 1), "path-3"),
            (("paths", 5), "paths"),
            (("preprocessing", "parse"), "parse"),
            (("preprocessing", "steps", 1, "set", "field"), "step-1"),
            (("preprocessing", "steps", 1, "condition"), "condition-1"),
            (("preprocessing", "steps"), "steps"),
            (("preprocessing", "classify_fallback"), "others"),
            (("quota", "bytes"), "others"),
        ):
            (note,) = field_notes([ApiFinding("x", "error", "No.", path)], rows)
            self.assertEqual((at, "error"), (note.at, note.kind), path)
        self.assertEqual([], field_notes([ApiFinding("yaml-syntax", "error", "No.")], rows))
        missing = [ApiFinding("missing-key", "error", "No.", ("name",))]
        self.assertEqual([], field_notes(missing, rows, is_begun=False))
        self.assertEqual("name", field_notes(missing, rows)[0].at)

    def test_container(self) -> None:
        """A path outside of the usual directory is said to need an argument in a container (2.2 rule 8)."""
        for path, argument in (
            ("/srv/tls/key.pem", "--volume /srv/tls:/srv/tls:ro"),
            ("/key.pem", "--volume /key.pem:/key.pem:ro"),
            ("/srv/my keys/key.pem", "--volume '/srv/my keys:/srv/my keys:ro'"),
            ("/etc/webhookrx/tls/key.pem", ""),
            ("/etc/webhookrx/tls/more/key.pem", ""),
            ("/etc/webhookrx/tls/../key.pem", ""),
            ("/a:b/key.pem", "--mount type=bind,source=/a:b,target=/a:b,readonly"),
            ("key.pem", ""),
            ("", ""),
        ):
            self.assertEqual(argument, volume_argument(path), path)
        (note,) = field_notes([], RuleValues(key_file="/srv/tls/key.pem"))
        self.assertEqual(("key_file", "note"), (note.at, note.kind))
        self.assertIn("--volume /srv/tls:/srv/tls:ro in the container arguments variable", note.sentence)
