"""Scale with provenance, scanned area, warnings: on properties as both readers give them, and on the real files."""

from pathlib import Path

import pytest

from pathnav.errors import SlideError
from pathnav.geometry import Box
from pathnav.slide import open_slide
from pathnav.slide.metadata import Properties, number
from pathnav.slide.scale import Scale, check_user_scale, find_scale

WIDTH, HEIGHT = 2000, 1000
PLANE = Box(0, 0, WIDTH, HEIGHT)

Raw = dict[str, str]

GENERIC = {"openslide.vendor": "generic-tiff"}


def aperio(x: str | None = None, y: str | None = None, power: str | None = None) -> Raw:
    """Return what OpenSlide says of an Aperio slide."""
    said = {"vendor": "aperio", "mpp-x": x, "mpp-y": y, "objective-power": power}
    return {f"openslide.{name}": text for name, text in said.items() if text is not None}


def tags(unit: str, resolution: str) -> Raw:
    return GENERIC | {"tiff.ResolutionUnit": unit, "tiff.XResolution": resolution, "tiff.YResolution": resolution}


def ome(pixels: str, more: str = "") -> Raw:
    namespace = 'xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06"'
    return GENERIC | {"tiff.ImageDescription": f'<?xml version="1.0"?><OME {namespace}>{more}{pixels}</OME>'}


def pixels(attributes: str, width: int = WIDTH, height: int = HEIGHT) -> str:
    return f'<Image ID="Image:0"><Pixels SizeX="{width}" SizeY="{height}" {attributes}/></Image>'


def scale(raw: Raw, mpp: float | None = None, power: float | None = None) -> Scale:
    return find_scale(Properties(raw), WIDTH, HEIGHT, mpp, power)


HALF = 'PhysicalSizeX="0.5" PhysicalSizeY="0.5"'
OBJECTIVE = '<Instrument ID="Instrument:0"><Objective ID="Objective:0" NominalMagnification="20.0"/></Instrument>'
COMMA = {"tiffslide.vendor": "aperio", "tiffslide.mpp-x": "0,4990", "tiffslide.mpp-y": "0,4990"}


@pytest.mark.parametrize(
    ("raw", "mpp_um", "source", "power", "warnings"),
    [
        (aperio("0.25", "0.25", "40"), (0.25, 0.25), "vendor", 40, []),
        (COMMA, (0.499, 0.499), "vendor", None, []),
        (aperio("0.25", "0.5"), (0.25, 0.5), "vendor", None, ["not square"]),
        (aperio("0.25"), (0.25, 0.25), "vendor", None, ["along x only"]),
        (aperio("0.5", "0.5", "40"), (0.5, 0.5), "vendor", 40, ["power 40 would mean 0.25 um per pixel"]),
        (aperio("0.2208", "0.2208", "40"), (0.2208, 0.2208), "vendor", 40, []),
        (aperio("0.4415", "0.4415", "20"), (0.4415, 0.4415), "vendor", 20, []),
        (aperio("0", "0", "20"), (0.5, 0.5), "objective-power", 20, ["state 0 um per pixel", "power in the file, 20"]),
        (aperio("about 0.5", "about 0.5"), None, None, None, ["'about 0.5'", "--mpp"]),
        (aperio(power="0"), None, None, None, ["'0'", "--objective-power"]),
        (tags("centimeter", "20000"), (0.5, 0.5), "tiff-tag", None, []),
        (tags("INCH", "72"), None, None, None, ["352.8 um per pixel", "--mpp"]),
        (tags("none", "1"), None, None, None, ["scale is unknown"]),
        (ome(pixels('PhysicalSizeX="0.499" PhysicalSizeY="0.5"')), (0.499, 0.5), "ome-xml", None, []),
        (ome(pixels('PhysicalSizeX="499" PhysicalSizeXUnit="nm"')), (0.499, 0.499), "ome-xml", None, ["along x only"]),
        (ome(pixels(f'{HALF} PhysicalSizeXUnit="µm"')), (0.5, 0.5), "ome-xml", None, []),
        (ome(pixels(HALF)) | tags("centimeter", "10000") | ome(pixels(HALF)), (0.5, 0.5), "ome-xml", None, []),
        (ome(pixels('PhysicalSizeX="15"', 300, 200) + pixels(HALF)), (0.5, 0.5), "ome-xml", None, []),
        (ome(pixels(""), OBJECTIVE), (0.5, 0.5), "objective-power", 20, ["power in the file, 20"]),
        (ome(pixels('PhysicalSizeX="1" PhysicalSizeXUnit="pixel"')), None, None, None, ["no length", "--mpp"]),
        (ome('<BinaryOnly MetadataFile="set.companion.ome"/>'), None, None, None, ["set.companion.ome", "--mpp"]),
        (GENERIC | {"tiff.ImageDescription": "<OME><Image>"}, None, None, None, ["cannot be read", "--mpp"]),
        (ome(pixels('PhysicalSizeX="half"')), None, None, None, ["'half'", "--mpp"]),
    ],
)
def test_the_first_usable_scale_counts_and_what_is_odd_is_a_warning(
    raw: Raw, mpp_um: tuple[float, float] | None, source: str | None, power: float | None, warnings: list[str]
) -> None:
    found = scale(raw)
    assert found.mpp_um == (None if mpp_um is None else pytest.approx(mpp_um))
    assert (found.source, found.objective_power) == (source, power)
    assert len(found.warnings) == len(warnings), found.warnings
    assert all(part in warning for part, warning in zip(warnings, found.warnings, strict=True)), found.warnings


@pytest.mark.parametrize(
    ("raw", "mpp", "power", "expected", "warnings"),
    [
        (aperio("0.25", "0.25"), 0.26, None, (0.26, "user"), []),
        (aperio("0.25", "0.25"), 0.5, None, (0.5, "user"), ["0.5 differs by more than 20% from the 0.25"]),
        (aperio(), None, 20, (0.5, "objective-power"), ["power given, 20"]),
        (aperio("0.25", "0.25"), None, 20, (0.25, "vendor"), ["the mpp decides"]),
        (aperio(power="40"), None, 20, (0.5, "objective-power"), ["differs from the file's, 40", "power given, 20"]),
        (GENERIC, 0.05, None, (0.05, "user"), []),
        (GENERIC, 20.0, None, (20.0, "user"), []),
    ],
)
def test_what_the_user_gives_is_recorded_and_a_contradiction_is_warned_of(
    raw: Raw, mpp: float | None, power: float | None, expected: tuple[float, str], warnings: list[str]
) -> None:
    found = scale(raw, mpp, power)
    assert (found.mpp_um, found.source) == ((expected[0],) * 2, expected[1])
    assert len(found.warnings) == len(warnings)
    assert all(part in warning for part, warning in zip(warnings, found.warnings, strict=True))


@pytest.mark.parametrize("number", [0.049, 200.1, 0.0, -1.0, float("nan"), float("inf")])
def test_what_the_user_gives_out_of_range_is_refused_with_the_range_and_the_slide(number: float) -> None:
    with pytest.raises(SlideError, match=r"--mpp must be in \[0.05, 20\], got .*a.svs"):
        check_user_scale("a.svs", number, None)
    with pytest.raises(SlideError, match=r"--objective-power must be in \[0.5, 200\], got .*a.svs"):
        check_user_scale("a.svs", None, number)


@pytest.mark.parametrize(
    ("text", "value"),
    [("0,4990", 0.499), ("0.499", 0.499), (" 40 ", 40.0), ("1,234.5", None), ("nan", None), ("inf", None), ("", None)],
)
def test_numbers_are_read_with_a_decimal_point_or_comma(text: str, value: float | None) -> None:
    assert number(text) == value


@pytest.mark.parametrize(
    ("x", "y", "width", "height", "expected", "warning"),
    [
        ("100", "50", "900.5", "400", Box(100, 50, 901, 400), "smaller than the plane of 2000 x 1000"),
        ("-5", "50", "5000", "5000", Box(0, 50, WIDTH, HEIGHT - 50), "smaller than the plane"),
        ("0", "0", "2000", "1000", PLANE, None),
        ("5000", "0", "10", "10", PLANE, "outside the plane"),
        ("left", "0", "10", "10", PLANE, "whole plane"),
    ],
)
def test_bounds_are_the_scanned_area_in_whole_pixels_of_the_plane(
    x: str, y: str, width: str, height: str, expected: Box, warning: str | None
) -> None:
    said = {"x": x, "y": y, "width": width, "height": height}
    box, warnings = Properties({f"openslide.bounds-{side}": text for side, text in said.items()}).scanned(PLANE)
    assert box == expected and len(warnings) == (warning is not None)
    assert warning is None or warning in warnings[0]


def test_a_phantom_is_known_by_its_image_description_and_an_ome_tiff_by_its_xml() -> None:
    assert Properties({"tiff.ImageDescription": "pathnav phantom, seed 7"}).is_phantom
    assert not Properties({"tiff.ImageDescription": "Aperio Image Library"}).is_phantom
    assert (Properties(ome(pixels(""))).format, Properties(aperio()).format) == ("ome-tiff", "aperio")


@pytest.mark.parametrize("reader", ["openslide", "tiffslide"])
@pytest.mark.parametrize(
    ("name", "mpp", "source", "power"),
    [
        ("CMU-1-Small-Region.svs", 0.499, "vendor", 20),
        ("svs-decimal-comma-mpp.svs", 0.499, "vendor", 20),
        ("svs-no-mpp-has-appmag.svs", 0.5, "objective-power", 20),
        ("svs-no-mpp-no-appmag.svs", None, None, None),
        ("tiff-pyramid-72dpi.tif", None, None, None),
        ("tiff-pyramid-0.5um.tif", 0.5, "tiff-tag", None),
        ("ome-subifd.ome.tif", 0.499, "ome-xml", None),
    ],
)
def test_real_files_have_the_same_scale_with_either_reader(
    shared: Path, reader: str, name: str, mpp: float | None, source: str | None, power: float | None
) -> None:
    with open_slide(shared / "slides" / name, reader=reader) as slide:
        assert (slide.mpp_um if slide.has_mpp else None) == (None if mpp is None else pytest.approx((mpp, mpp)))
        assert (slide.mpp_source, slide.objective_power) == (source, power)
