"""How long a conversation the model can hold, as the server says, and whether an episode fits."""

from collections.abc import Mapping
from typing import Any

import httpx

from pathnav.model.image_tokens import Growth, conversation_tokens, image_tokens
from pathnav.model.probe_chart import Chart, decides
from pathnav.model.probe_finding import Finding, Result
from pathnav.model.probe_pictures import VIEW_PX
from pathnav.model.settings import ChatSettings

ROIS = 20
"""The largest budget of the paper, at 2.5x."""
_START_TOKENS, _TURN_TOKENS = 1_500, 250  # prompts and tools; a call with its reply
_TIMEOUT_S = 20.0
_NAMES = ("max_model_len", "context_length", "context_window", "max_context_length")  # vLLM; OpenRouter; Groq; Mistral
_META = ("n_ctx", "n_ctx_train")  # llama.cpp: what it was started with; what the model was trained with


@decides("context", fields=("context_tokens",))
def probe_context(chart: Chart) -> None:
    """Check the context that the server names, and warn where an episode of 20 ROIs would overflow it."""
    chart.line.insist()
    settings = chart.line.settings
    chart.line.calls += 1
    named = _context(listed_models(settings), settings.model)
    context = named or chart.base.context_tokens
    profile = chart.profile
    per_image = image_tokens(*VIEW_PX, profile.pixels_per_token)
    pictured, needed = episode_tokens(per_image, profile.most_images)
    facts = {"context_tokens": context, "tokens_of_an_image": per_image, "tokens_of_an_episode": needed, "rois": ROIS}
    source = "the server counts" if chart.image_tokens else "estimated"
    cost = f"an image of 1,024 px costs {per_image:,} tokens ({source}), an episode of {ROIS} ROIs about {needed:,}"
    cost += f" ({pictured:,} for images, the rest for text and answers)"
    if context is None:
        chart.leave_open({"context_tokens": "the server does not name its context"})
        means = "whether an episode fits is not known beforehand; context_overflow would be its outcome"
        change = "set context_tokens in the profile"
        chart.add(
            Finding("context", Result.UNDECIDED, f"the server does not name its context; {cost}", means, change, facts)
        )
        return
    fields = {"context_tokens": named} if named else {}
    seen = f"the context holds {context:,} tokens; {cost}"
    if needed <= context:
        chart.add(Finding("context", Result.YES, seen, "the largest episodes of the paper fit", facts=facts), **fields)
        return
    chart.add(Finding("context", Result.NO, seen, _OVERFLOWS, _way_out(per_image, context), facts), **fields)


_OVERFLOWS = "large budgets overflow the context: such episodes end as context_overflow"


def episode_tokens(per_image: int, images_live: int | None = None) -> tuple[int, int]:
    """Return what an episode of `ROIS` looks takes of a context: its images alone, and with text and answers.

    Args:
        per_image: Tokens of an image; the overview is one more.
        images_live: Most images in a request, None for all.
    """
    images, whole = (
        conversation_tokens(Growth(start, turn, per_image, ROIS + 1, images_live), ROIS + 1)
        for start, turn in ((0, 0), (_START_TOKENS, _TURN_TOKENS))
    )
    return images, whole


def _way_out(per_image: int, context: int) -> str:
    """Return what makes an episode fit."""
    fits = [live for live in range(ROIS, 1, -1) if episode_tokens(per_image, live)[1] <= context]
    if fits:
        return f"serve it with a larger context, or set images_live: {fits[0]} in the profile"
    return "serve it with a larger context, or show smaller images (--agent-option view_px=512) with images_live: 2"


def _context(models: object, wanted: str) -> int | None:
    """Return the context of a model in a server's list; of the only one where its name is not in it."""
    entries = models.get("data") if isinstance(models, Mapping) else None
    known = [entry for entry in entries if isinstance(entry, Mapping)] if isinstance(entries, list) else []
    own = [entry for entry in known if entry.get("id") == wanted] or (known if len(known) == 1 else [])
    for entry in own:
        meta = entry.get("meta")
        sources = [(entry, _NAMES), (meta if isinstance(meta, Mapping) else {}, _META)]
        for source, names in sources:
            for name in names:
                value = source.get(name)
                if type(value) is int and value >= 1:
                    return value
    return None


def listed_models(settings: ChatSettings) -> Any:
    """Return the body of `GET /models`, None where there is none."""
    headers = {"Authorization": f"Bearer {settings.api_key}"} if settings.api_key else {}
    url = f"{settings.endpoint}/models"
    try:
        with httpx.Client(timeout=_TIMEOUT_S, trust_env=not settings.is_loopback, follow_redirects=False) as client:
            response = client.get(url, headers=headers)
        return response.json() if response.is_success else None
    except (httpx.HTTPError, ValueError, RecursionError):
        return None
