"""Words for a finding become one direction."""

import hashlib
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from pathnav.errors import ConfigError
from pathnav.retrieval import FINDING_TEMPLATES, contrast_of, finding_vector
from pathnav.retrieval.prompts import SHARPNESS, TUMOUR_CONTRAST, VERSION


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
    model = HashedWords()
    mean = model.encode_texts([one.replace("{}", "a {0} b") for one in FINDING_TEMPLATES]).mean(axis=0)
    np.testing.assert_allclose(finding_vector(model, "a {0} b"), mean / np.linalg.norm(mean), atol=1e-6)


def test_a_finding_without_words_is_refused() -> None:
    with pytest.raises(ConfigError, match="finding"):
        finding_vector(HashedWords(), " . ")


def test_own_words_replace_one_side_or_both() -> None:
    assert contrast_of(None, None) is TUMOUR_CONTRAST
    assert contrast_of("a", ["b", "c"]).as_json == {"tumour": ["a"], "not_tumour": ["b", "c"], "version": "own"}
    assert contrast_of(None, "b").tumour == TUMOUR_CONTRAST.tumour
    with pytest.raises(ConfigError, match=r"not_tumour .* \[\]"):
        contrast_of("a", [])


def test_a_probability_is_the_softmax_over_the_cosines_with_both_sides() -> None:
    model = HashedWords()
    images = model.encode_texts(["x", "y", "z"])
    weights = np.exp(SHARPNESS * (images @ model.encode_texts(["a", "b"]).T))
    found = contrast_of("a", "b").probabilities(model, images)
    np.testing.assert_allclose(found, weights[:, 0] / weights.sum(axis=1), atol=1e-5)
