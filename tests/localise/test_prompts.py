"""What a model is told is pinned: a changed text needs a new version, since it changes every result."""

from pathnav.localise import prompts

PINNED = ("mode-a-2", "c58ee282e2079473")


def test_a_changed_prompt_needs_a_new_version() -> None:
    assert (prompts.PROMPT_VERSION, prompts.prompt_hash()[:16]) == PINNED
