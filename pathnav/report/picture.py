"""The trajectory picture: where an agent looked, what it answered, and where the target was."""

import io
from collections.abc import Sequence
from pathlib import Path

from PIL import Image
from PIL.PngImagePlugin import PngInfo

from pathnav.cohort.query import Query
from pathnav.errors import RecordError
from pathnav.geometry import Box, iou
from pathnav.records import write_bytes_atomic
from pathnav.report.figure import MIN_SIDE_PX, REFERENCE_SIDE_PX, Figure, Trajectory
from pathnav.report.load import EpisodeResult, load_result
from pathnav.report.own_files import PICTURE_KEY, PICTURE_MARK
from pathnav.report.record_parts import SlideRecord
from pathnav.run.folder import RunFolder
from pathnav.slide import Slide, open_slide


def draw_trajectory(
    slide: Slide,
    query: Query,
    rois: Sequence[Box],
    final_box: Box | None,
    *,
    target: Box | None = None,
    reported: Box | None = None,
    max_side_px: int = REFERENCE_SIDE_PX,
    title: str | None = None,
    note: str | None = None,
) -> Image.Image:
    """Draw the search region with its ROIs in order, the answer, the target where known, a legend and a scale bar.

    A search region that is a small part of the slide gets an inset that shows where it lies.

    Args:
        slide: An open slide; only overviews are read.
        query: The question, whose finding and magnification stand above the picture.
        rois: Boxes looked at, in order, in level-0 pixels.
        final_box: The box that is scored, None without a valid report.
        target: The box that `final_box` is scored against, where known.
        reported: The box as the agent said it.
        max_side_px: Limit of the picture's long side in pixels; at least 400.
        title: The heading; the slide's opaque handle by default.
        note: One more line of the column, such as the outcome.

    Returns: An RGB image whose long side is at most `max_side_px`.
    """
    trajectory = Trajectory(query.region, tuple(rois), final_box, reported, target)
    figure = Figure(slide, trajectory, max(MIN_SIDE_PX, max_side_px))
    facts = [f"{query.magnification:g}×, {len(rois)} of {query.budget} ROIs"]
    if target is not None and final_box is not None:
        facts.append(f"IoU {iou(final_box, target):.2f}")
    if slide.is_phantom:
        facts.append("phantom slide")
    facts += [note] if note else ["no box reported"] if final_box is None else []
    return figure.compose(title or query.handle, query.finding, facts)


def draw_episode(
    run_folder: str | Path,
    key: str,
    *,
    slide_path: str | Path | None = None,
    max_side_px: int = REFERENCE_SIDE_PX,
    title: str | None = None,
) -> Image.Image:
    """Draw a recorded episode; its slide is opened where it was, or at `slide_path`.

    Args:
        run_folder: The folder of a run.
        key: The episode's key: the name of its folder under `episodes`.
        slide_path: Where the slide lies now, if it was moved.
        max_side_px: Limit of the picture's long side in pixels.
        title: The heading; slide and agent by default.

    Raises:
        RecordError: If there is no such finished episode, or the slide is not the one that it was about.
        SlideError: If the slide cannot be opened.
    """
    result = load_result(RunFolder(Path(run_folder)), key)
    if result is None:
        raise RecordError(f"{run_folder} has no finished episode {key!r}")
    if not isinstance(result, EpisodeResult):
        raise RecordError(
            f"{key!r} of {run_folder} is an exploration of a whole slide, which has no trajectory to draw"
        )
    with _open_again(result.slide, str(slide_path or result.slide.path)) as slide:
        return draw_result(slide, result, max_side_px=max_side_px, title=title)


def draw_result(
    slide: Slide, result: EpisodeResult, *, max_side_px: int = REFERENCE_SIDE_PX, title: str | None = None
) -> Image.Image:
    """Draw one result on its open slide; a declared distribution of boxes has no final box to draw.

    The target is drawn where it was scored, so that the printed IoU is that of the drawn boxes.

    Args:
        slide: The slide that the episode was about.
        result: Its record.
        max_side_px: Limit of the picture's long side in pixels.
        title: The heading; slide and agent by default.
    """
    final, reported, target = (
        Box.from_list(box) if box else None
        for box in (result.box, result.reported, result.scored_target or result.target)
    )
    return draw_trajectory(
        slide,
        _query(result),
        [Box.from_list(roi) for roi in result.rois],
        None if result.draws else final,
        target=target,
        reported=None if result.draws else reported,
        max_side_px=max_side_px,
        title=title or f"{Path(result.slide.path).name}, {_who(result)}",
        note=_note(result),
    )


def write_picture(path: Path, picture: Image.Image) -> None:
    """Write a picture as PNG, with a text in it that says who wrote it: such a file may be written over later.

    It shows the slide's pixels, so it is readable by its owner only.

    Raises:
        RecordError: If it cannot be written.
    """
    mark = PngInfo()
    mark.add_text(PICTURE_KEY, PICTURE_MARK)
    encoded = io.BytesIO()
    picture.save(encoded, format="PNG", pnginfo=mark)
    write_bytes_atomic(path, encoded.getvalue())


def _open_again(recorded: SlideRecord, path: str) -> Slide:
    """Return the open slide of a record, with the scale that it was used with."""
    slide = open_slide(path)
    if slide.fingerprint != recorded.fingerprint:
        slide.close()
        raise RecordError(f"{path} is not the slide that the episode was about: its fingerprint differs")
    if recorded.mpp_um is None or (slide.has_mpp and slide.mpp_um == recorded.mpp_um):
        return slide
    slide.close()
    return open_slide(path, mpp=recorded.mpp_um[0])


def _query(result: EpisodeResult) -> Query:
    asked = result.query
    region = Box.from_list(asked.region)
    return Query(asked.handle, asked.magnification, asked.finding, region, *asked.target_size, asked.budget)


def _who(result: EpisodeResult) -> str:
    return f"{result.agent} ({result.model})" if result.model else result.agent


def _note(result: EpisodeResult) -> str | None:
    """Return what the picture cannot show."""
    if result.draws:
        expected = "" if result.iou is None else f", expected IoU {result.iou:.2f}"
        return f"{result.draws:,} boxes declared{expected}"
    return None if result.has_valid_box else f"outcome: {result.outcome}"
