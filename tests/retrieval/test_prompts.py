"""Words for a finding become one direction."""

import hashlib
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from pathnav.errors import ConfigError
from pathnav.retrieval import FINDING_TEMPLATES, TUMOUR_CONTRAST, Contrast, finding_vector, prompt_vector
from pathnav.retrieval.prompts import VERSION, finding_texts


class HashedWords:
    """A text encoder whose vectors are drawn from a text's own bytes."""

    def encode_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit rows."""
        seeds = [int.from_bytes(hashlib.sha256(text.encode()).digest()[:8]) for text in texts]
        rows = np.stack([np.random.default_rng(seed).normal(size=8) for seed in seeds])
        return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def test_a_finding_is_the_mean_of_its_sentences_at_unit_length() -> None:
    model = HashedWords()
    mean = model.encode_texts([one.replace("{}", "comedo necrosis") for one in FINDING_TEMPLATES]).mean(axis=0)
    found = finding_vector(model, " comedo  necrosis. ")
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, mean / np.linalg.norm(mean), atol=1e-6)


def test_the_templates_are_pinned_under_their_version() -> None:
    digest = hashlib.sha256("\n".join(FINDING_TEMPLATES).encode()).hexdigest()
    assert (VERSION, digest[:16]) == ("finding-1", "f1826e0c74699ad7")


def test_the_words_of_the_contrast_are_pinned_under_their_version() -> None:
    words = "\n".join((*TUMOUR_CONTRAST.tumour, *TUMOUR_CONTRAST.not_tumour))
    assert (TUMOUR_CONTRAST.version, hashlib.sha256(words.encode()).hexdigest()[:16]) == (
        "tumour-1",
        "88012cf01d0fb239",
    )


def test_braces_in_a_finding_stay_as_they_are() -> None:
    assert finding_texts("a {0} b", ["x {}"]) == ["x a {0} b"]


@pytest.mark.parametrize(
    ("finding", "templates", "sentence"),
    [
        (" . ", FINDING_TEMPLATES, "the finding is empty"),
        ("x", ["no place"], "a template must have one {} for the finding, got 'no place'"),
        ("x", ["{} {}"], "a template must have one {}"),
    ],
)
def test_a_finding_without_words_or_place_is_refused(finding: str, templates: Sequence[str], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        finding_vector(HashedWords(), finding, templates)


def test_no_prompt_has_no_direction() -> None:
    with pytest.raises(ConfigError, match="at least one prompt is needed"):
        prompt_vector(HashedWords(), [])


def test_own_words_replace_the_contrast() -> None:
    own = Contrast(("a", "b"), ("c",))
    assert own.as_json == {"tumour": ["a", "b"], "not_tumour": ["c"], "version": "own"}
    vectors = own.vectors(HashedWords())
    np.testing.assert_allclose(vectors[1], HashedWords().encode_texts(["c"])[0], atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)


def test_a_contrast_needs_words_on_both_sides() -> None:
    with pytest.raises(ConfigError, match=r"not_tumour must be one or more prompts, got \[\]"):
        Contrast(("a",), ())
