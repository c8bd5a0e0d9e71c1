"""Replicas: each in turn, the next one for one that is not available."""

import pytest

from lemn_tf.export.client import MemoryClient
from lemn_tf.export.errors import Code, ServingError
from lemn_tf.export.transport.replicas import Replicas


class Replica:
    """A server that answers with its name."""

    def __init__(self, name, versions=(1,)):
        self.name, self.versions, self.asked = name, versions, 0
        self.code: Code | None = None

    def describe(self, version=None):
        self._fail()
        version = version or max(self.versions)
        if version not in self.versions:
            raise ServingError(Code.NOT_FOUND, f"no version {version}")
        return version, {}

    def run(self, signature, arrays):
        self.asked += 1
        self._fail()
        return {"by": self.name}

    def _fail(self):
        if self.code is not None:
            raise ServingError(self.code, f"{self.name} fails")

    def close(self):
        self.name = ""


@pytest.fixture
def three():
    return [Replica(name) for name in "abc"]


def by(all_of_them, count):
    return "".join(all_of_them.run("observe", {})["by"] for _ in range(count))


def test_each_is_asked_in_turn(three):
    all_of_them = Replicas(three)
    assert all_of_them.describe() == (1, {})
    assert sorted(by(all_of_them, 3)) == ["a", "b", "c"]
    assert by(all_of_them, 6) == by(all_of_them, 3) * 2


def test_one_that_is_gone_is_left_alone_for_a_while(three, monkeypatch):
    all_of_them = Replicas(three)
    all_of_them.describe()
    three[1].code = Code.UNAVAILABLE
    assert by(all_of_them, 12).count("b") == 0
    assert three[1].asked <= 1
    three[1].code = None
    monkeypatch.setattr(all_of_them, "_rests_until", [0.0] * 3)
    assert "b" in by(all_of_them, 3)


def test_if_none_is_there_that_is_said(three):
    all_of_them = Replicas(three)
    all_of_them.describe()
    for one in three:
        one.code = Code.UNAVAILABLE
    with pytest.raises(ServingError, match="fails") as error:
        by(all_of_them, 1)
    assert error.value.code is Code.UNAVAILABLE


def test_what_is_wrong_is_not_sent_again(three):
    all_of_them = Replicas(three)
    all_of_them.describe()
    by(all_of_them, 3)
    for one in three:
        one.code = Code.INVALID_ARGUMENT
    with pytest.raises(ServingError, match="fails"):
        by(all_of_them, 1)
    assert sum(one.asked for one in three) == 4


def test_all_answer_with_the_version_that_the_first_one_named():
    old, new = Replica("old", versions=(1,)), Replica("new", versions=(1, 2))
    assert Replicas([old, new]).describe()[0] == 1
    both = Replicas([new, old])
    assert both.describe()[0] == 2
    with pytest.raises(ServingError, match="no version 2"):
        by(both, 2)


def test_no_address_is_no_target():
    with pytest.raises(ValueError, match="expected the addresses of one replica or more"):
        MemoryClient([])
