"""The scorer that asks a model, against a real server on loopback."""

import hashlib
import io
import json
import threading
import time
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from pathnav.cohort.protocol import MIN_IMAGE_SIDE_PX
from pathnav.errors import ConfigError, ModelError, PluginError
from pathnav.explore import Schedule, ScorerConfiguration, ScoreStore, Source, TileScore, TileTree, TopK, explore
from pathnav.explore.vlm import VlmScorer
from pathnav.model import STUB_MODEL, ChatClient, ChatSettings, StubServer
from support.chat_server import Answer, Request, failure, say
from support.exploring import WORKERS, detail, distinct, scoring, sent_jpeg, some


def with_logprobs(*chances: tuple[str, float]) -> Answer:
    top = [{"token": word, "logprob": float(np.log(p))} for word, p in chances]
    choice = {
        "message": {"role": "assistant", "content": f"{chances[0][0]} 99"},
        "finish_reason": "stop",
        "logprobs": {"content": [{**top[0], "top_logprobs": top}]},
    }
    return Answer(body=json.dumps({"id": "1", "choices": [choice]}).encode())


def test_small_tiles_are_enlarged_by_a_whole_factor(tree: TileTree) -> None:
    with scoring([say("Yes 1")]) as (scorer, server):
        list(scorer.score(some(tree, 1)))
    assert server.requests[0].images[0].size == (MIN_IMAGE_SIDE_PX, MIN_IMAGE_SIDE_PX)


def test_a_request_says_nothing_of_slide_or_place(tiles_of: TileTree) -> None:
    with scoring([say("No 3")]) as (scorer, server):
        list(scorer.score([tiles_of.images(2, np.array([200]))[0]]))
    assert len(server.requests[0].messages) == 1
    assert [part["type"] for part in server.requests[0].parts] == ["text", "image_url"]
    text = server.requests[0].text
    assert "40x" in text and "malignant tumour" in text and "{" not in text
    assert not any(word in text for word in ("phantom", "tiff", "row", "column", "level-0"))
    with Image.open(io.BytesIO(server.requests[0].jpegs[0])) as image:
        assert not {"exif", "comment", "icc_profile"} & set(image.info)


def test_log_probabilities_are_used_where_there_are_any(tiles_of: TileTree) -> None:
    with scoring([with_logprobs(("No", 0.6), ("Yes", 0.2), ("Maybe", 0.1))]) as (scorer, server):
        (score,) = scorer.score(some(tiles_of, 1))
    assert (score.yes, score.confidence, score.source, score.requests) == (False, 0.25, Source.LOGPROBS, 1)
    assert (detail(score)["mass"], detail(score)["stated"], detail(score)["tokens"]) == (0.8, 99.0, None)
    assert detail(score)["p_yes"] == 0.25
    assert server.requests[0].body["top_logprobs"] == 20


def test_without_log_probabilities_the_stated_number_counts(tiles_of: TileTree) -> None:
    with scoring([say("Yes 73")]) as (scorer, server):
        (score,) = scorer.score(some(tiles_of, 1))
    assert (score.yes, score.confidence, score.source) == (True, 0.73, Source.STATED)
    found = detail(score)
    assert 0 < found.pop("seconds") < 60
    assert found == {
        "format": "pathnav-vlm-detail-2",
        "text": "Yes 73",
        "first_text": None,
        "p_yes": None,
        "image": sent_jpeg(some(tiles_of, 1)[0]),
        "tokens": {"input": 11, "output": 7},
        "mass": None,
        "stated": 73.0,
        "retries": 0,
        "images_sent": 1,
        "bytes_sent": len(server.requests[0].raw),
    }


def test_a_server_that_refuses_log_probabilities_is_asked_without(tiles_of: TileTree) -> None:
    def answer(request: Request) -> Answer:
        return failure(400, "unknown field logprobs") if "logprobs" in request.body else say("Yes 73")

    with scoring(answer, workers=1) as (scorer, server):
        scores = list(scorer.score(some(tiles_of, 4)))
    assert [score.source for score in scores] == [Source.STATED] * 4
    assert len(server.requests) == 5


def test_an_unclear_answer_is_asked_for_once_more(tiles_of: TileTree) -> None:
    with scoring([say("Hard to tell."), say("No 20")]) as (scorer, server):
        (score,) = scorer.score(some(tiles_of, 1))
    assert (score.yes, score.confidence, score.requests) == (False, 0.2, 2)
    assert (detail(score)["images_sent"], detail(score)["tokens"]) == (2, {"input": 22, "output": 14})
    assert (detail(score)["text"], detail(score)["first_text"]) == ("No 20", "Hard to tell.")
    first, second = server.requests
    assert second.messages[0] == first.messages[0]
    assert [message["role"] for message in second.messages] == ["user", "assistant", "user"]
    assert second.messages[1]["content"] == "Hard to tell."


def test_a_second_unclear_answer_is_unparsed_and_no_no(tiles_of: TileTree) -> None:
    with scoring([say("Hmm."), say("x" * 3000)]) as (scorer, _):
        (score,) = scorer.score(some(tiles_of, 1))
    assert (score.yes, score.source, score.requests) == (None, Source.UNPARSED, 2)
    assert len(detail(score)["text"]) == 2000


def test_a_refusal_that_begins_with_no_is_no_no(tiles_of: TileTree) -> None:
    refusal = say("No, I cannot help with that.", finish_reason="content_filter")
    with scoring([refusal, refusal]) as (scorer, _):
        (score,) = scorer.score(some(tiles_of, 1))
    assert score.yes is None and detail(score)["refused"] is True


def test_scores_come_in_order_whatever_the_order_of_the_answers(tiles_of: TileTree) -> None:
    def answer(request: Request) -> Answer:
        mean = round(float(np.asarray(request.images[0]).mean()) / 2.56, 3)
        return say(f"Yes {mean}", delay_s=zlib.crc32(request.raw) % 7 / 200)

    images = distinct(tiles_of, 60)
    with scoring(answer) as (scorer, server):
        scores = list(scorer.score(images))
    by_image = {hashlib.sha256(r.jpegs[0]).hexdigest() for r in server.requests}
    assert [detail(score)["image"] for score in scores] == [sent_jpeg(image) for image in images]
    assert {detail(score)["image"] for score in scores} == by_image


def test_scores_before_a_tile_without_answer_are_yielded_and_no_further_one_is_begun(tiles_of: TileTree) -> None:
    images = distinct(tiles_of, 60)
    bad, before = sent_jpeg(images[20]), {sent_jpeg(image) for image in images[:20]}
    all_before_are_asked = threading.Event()

    def answer(request: Request) -> Answer:
        name = hashlib.sha256(request.jpegs[0]).hexdigest()
        before.discard(name)
        if not before:
            all_before_are_asked.set()
        if name == bad:
            all_before_are_asked.wait(20)  # a thread may have taken a tile before this one and not yet read it
        return failure(404, "gone") if name == bad else say("Yes 73", delay_s=0.02)

    found: list[TileScore] = []
    with scoring(answer) as (scorer, server), pytest.raises(ModelError, match="gone"):
        for score in scorer.score(images):
            found.append(score)
    assert [detail(score)["image"] for score in found] == [sent_jpeg(image) for image in images[:20]]
    assert len(server.requests) < 20 + 1 + 2 * WORKERS  # none is begun after the failure


def test_closing_the_scores_neither_waits_for_answers_nor_asks_on(tiles_of: TileTree) -> None:
    gate = threading.Event()
    images = distinct(tiles_of, 60)
    first = sent_jpeg(images[0])

    def answer(request: Request) -> Answer:
        if hashlib.sha256(request.jpegs[0]).hexdigest() != first:
            gate.wait(20)
        return say("Yes 73")

    with scoring(answer) as (scorer, server):
        scores = scorer.score(images)
        next(scores)
        started = time.monotonic()
        scores.close()  # type: ignore[attr-defined]
        assert time.monotonic() - started < 5
        gate.set()
        time.sleep(0.3)
        assert len(server.requests) <= 1 + WORKERS


def test_settings_change_with_what_changes_a_score_and_with_nothing_else(tmp_path: Path) -> None:
    question = tmp_path / "question.txt"
    question.write_text("Yes or No? {target_text} {other}")
    plain = VlmScorer().settings
    assert plain["model"] is None and plain["decoding"] is None and plain["prompt"] == "mode-b-1"
    changed = [
        VlmScorer(prompt=str(question)).settings,
        VlmScorer(target_text="mitosis").settings,
        VlmScorer(jpeg_quality=80).settings,
        VlmScorer(top_logprobs=0).settings,
    ]
    for fields in ({}, {"model": "b"}, {"temperature": 1.0}, {"seed": 3}, {"max_tokens": 9}, {"image_detail": "low"}):
        changed.append(told("http://127.0.0.1:1/v1", 1, **fields))
    assert len({json.dumps(settings, sort_keys=True) for settings in [plain, *changed]}) == 11
    assert told("http://127.0.0.1:1/v1", 1) == told("http://127.0.0.2:2/v1", 9, api_key="k", timeout_s=5.0)
    moved = tmp_path / "moved.txt"
    moved.write_text(question.read_text())
    assert VlmScorer(prompt=moved).settings == changed[0]
    assert changed[0]["prompt"] == "user" and str(tmp_path) not in json.dumps(changed)


def told(base_url: str, workers: int, **fields: Any) -> dict[str, Any]:
    scorer = VlmScorer()
    with ChatClient(ChatSettings(**{"base_url": base_url, "model": "a", **fields})) as client:
        scorer.accept_chat(client, workers)
        return scorer.settings


def test_a_users_question_is_sent_with_its_placeholders_filled_and_other_braces_kept(
    tiles_of: TileTree, tmp_path: Path
) -> None:
    path = tmp_path / "q.txt"
    path.write_text('Is {target_text} here at {magnification}x? {"answer": ...} {x}')
    with scoring([say("No 1")], prompt=path, target_text="{magnification} fat") as (scorer, server):
        list(scorer.score(some(tiles_of, 1)))
    assert server.requests[0].text == 'Is {magnification} fat here at 40x? {"answer": ...} {x}'


@pytest.mark.parametrize("content", [None, b"", b" \n", b"\xff\xfe\x00"])
def test_a_prompt_file_that_cannot_be_used_is_one_sentence(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "q.txt"
    if content is not None:
        path.write_bytes(content)
    for bad in (path, tmp_path):
        with pytest.raises(ConfigError, match="the prompt file") as caught:
            VlmScorer(prompt=str(bad))
        assert "\n" not in str(caught.value)


def test_a_target_that_the_users_question_has_no_place_for_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "q.txt"
    path.write_text("Are there mitoses? Yes or No.")
    with pytest.raises(ConfigError, match=r"q\.txt has no \{target_text\}"):
        VlmScorer(prompt=path, target_text="mitoses")
    assert VlmScorer(prompt=path).settings["prompt"] == "user"


@pytest.mark.parametrize("options", [{"jpeg_quality": 0}, {"top_logprobs": 21}, {"target_text": " "}])
def test_options_out_of_range_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        VlmScorer(**options)


def test_without_a_client_it_says_so(tiles_of: TileTree) -> None:
    with pytest.raises(PluginError, match="accept_chat"):
        list(VlmScorer().score(some(tiles_of, 1)))


def test_a_search_with_the_stub_is_stored_and_not_asked_again(tiles_of: TileTree, tmp_path: Path) -> None:
    with StubServer() as server, ChatClient(ChatSettings(server.base_url, STUB_MODEL)) as client:
        scorer = VlmScorer()
        scorer.accept_chat(client, 4)
        with ScoreStore(tmp_path / "s.sqlite", ScorerConfiguration.of(scorer, 1), tiles_of.fingerprint) as store:
            found = explore(tiles_of, scorer, [TopK(Schedule((2, 2, 2)))], store=store)
            again = explore(tiles_of, scorer, [TopK(Schedule((2, 2, 2)))], store=store)
    assert found.tiles_now == found.requests_now > 0
    assert again.tiles_now == again.requests_now == 0
