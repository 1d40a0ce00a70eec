"""Scale with provenance, scanned area, warnings: on properties as both readers give them, and on the real files."""

from pathlib import Path

import pytest

from pathnav.errors import SlideError
from pathnav.geometry import Box
from pathnav.slide import MppSource, open_slide
from pathnav.slide.metadata import SlideMetadata, read_metadata
from pathnav.slide.properties import number

WIDTH, HEIGHT = 2000, 1000
APERIO = {"openslide.vendor": "aperio", "openslide.mpp-x": "0.25", "openslide.mpp-y": "0.25"}
GENERIC = {"openslide.vendor": "generic-tiff"}


def read(
    properties: dict[str, str | None], mpp: float | None = None, objective_power: float | None = None
) -> SlideMetadata:
    return read_metadata("a.svs", properties, WIDTH, HEIGHT, mpp=mpp, objective_power=objective_power)  # type: ignore[arg-type]


def ome(pixels: str, more: str = "") -> dict[str, str | None]:
    namespace = 'xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06"'
    return GENERIC | {"tiff.ImageDescription": f'<?xml version="1.0"?><OME {namespace}>{more}{pixels}</OME>'}


def pixels(attributes: str, width: int = WIDTH, height: int = HEIGHT) -> str:
    return f'<Image ID="Image:0"><Pixels SizeX="{width}" SizeY="{height}" {attributes}/></Image>'


def only_warning(found: SlideMetadata) -> str:
    assert len(found.warnings) == 1, found.warnings
    return found.warnings[0]


def test_vendor_mpp_is_taken_without_a_warning() -> None:
    found = read(APERIO | {"openslide.objective-power": "40"})
    assert (found.mpp_um, found.mpp_source, found.objective_power) == ((0.25, 0.25), MppSource.VENDOR, 40)
    assert (found.format, found.bounds, found.warnings) == ("aperio", Box(0, 0, WIDTH, HEIGHT), ())


def test_tiffslide_properties_mean_the_same_as_openslide_ones() -> None:
    found = read(
        {"tiffslide.vendor": "aperio", "tiffslide.mpp-x": 0.25, "tiffslide.mpp-y": 0.25, "tiffslide.bounds-x": None}
    )  # type: ignore[dict-item]
    assert (found.format, found.mpp_um, found.mpp_source) == ("aperio", (0.25, 0.25), MppSource.VENDOR)


@pytest.mark.parametrize(
    ("text", "value"),
    [("0,4990", 0.499), ("0.499", 0.499), (" 40 ", 40.0), ("1,234.5", None), ("nan", None), ("inf", None), ("", None)],
)
def test_numbers_are_read_with_a_decimal_point_or_comma(text: str, value: float | None) -> None:
    assert number(text) == value


def test_decimal_comma_in_the_mpp_is_read() -> None:
    found = read({"tiffslide.vendor": "aperio", "tiffslide.mpp-x": "0,4990", "tiffslide.mpp-y": "0,4990"})
    assert found.mpp_um == (0.499, 0.499)


def test_tiff_tags_give_the_mpp_of_a_generic_tiff() -> None:
    tags = {"tiff.ResolutionUnit": "centimeter", "tiff.XResolution": "20000", "tiff.YResolution": "20000"}
    found = read(GENERIC | tags)
    assert (found.mpp_um, found.mpp_source, found.warnings) == ((0.5, 0.5), MppSource.TIFF_TAG, ())


@pytest.mark.parametrize("unit", ["inch", "INCH"])
def test_72_dpi_in_tiff_tags_is_rejected_with_a_warning_that_says_its_value(unit: str) -> None:
    found = read(GENERIC | {"tiff.ResolutionUnit": unit, "tiff.XResolution": "72", "tiff.YResolution": "72"})
    assert (found.mpp_um, found.mpp_source) == (None, None)
    assert "352.8 um per pixel" in found.warnings[0]
    assert "--mpp" in found.warnings[1]
    assert "--objective-power" in found.warnings[1]


def test_resolution_tags_without_a_unit_state_no_scale() -> None:
    found = read(GENERIC | {"tiff.ResolutionUnit": "none", "tiff.XResolution": "1", "tiff.YResolution": "1"})
    assert found.mpp_um is None
    assert "scale is unknown" in only_warning(found)


def test_unusable_vendor_mpp_falls_back_to_the_objective_power_and_says_both() -> None:
    found = read({**APERIO, "openslide.mpp-x": "0", "openslide.mpp-y": "0", "openslide.objective-power": "20"})
    assert (found.mpp_um, found.mpp_source) == ((0.5, 0.5), MppSource.OBJECTIVE_POWER)
    assert "state 0 um per pixel" in found.warnings[0]
    assert "taken from the objective power in the file, 20" in found.warnings[1]


def test_mpp_that_is_no_number_is_quoted_in_the_warning() -> None:
    found = read({**APERIO, "openslide.mpp-x": "about 0.5", "openslide.mpp-y": "about 0.5"})
    assert "'about 0.5'" in found.warnings[0]
    assert found.mpp_um is None


def test_mpp_wins_over_a_contradicting_objective_power_with_a_warning() -> None:
    found = read({**APERIO, "openslide.mpp-x": "0.5", "openslide.mpp-y": "0.5", "openslide.objective-power": "40"})
    assert found.mpp_um == (0.5, 0.5)
    assert "the objective power 40 would mean 0.25 um per pixel, but the mpp is 0.5" in only_warning(found)


@pytest.mark.parametrize(("power", "mpp"), [("40", "0.2208"), ("40", "0.275"), ("20", "0.4415")])
def test_usual_differences_between_power_and_mpp_are_no_contradiction(power: str, mpp: str) -> None:
    found = read({**APERIO, "openslide.mpp-x": mpp, "openslide.mpp-y": mpp, "openslide.objective-power": power})
    assert found.warnings == ()


def test_each_axis_keeps_its_own_mpp_with_a_warning() -> None:
    found = read({**APERIO, "openslide.mpp-y": "0.5"})
    assert found.mpp_um == (0.25, 0.5)
    assert "not square" in only_warning(found)


def test_mpp_of_one_axis_is_used_for_both_with_a_warning() -> None:
    found = read({**APERIO, "openslide.mpp-y": None})
    assert found.mpp_um == (0.25, 0.25)
    assert "along x only" in only_warning(found)


def test_objective_power_that_no_microscope_has_is_ignored_with_a_warning() -> None:
    found = read({"openslide.vendor": "aperio", "openslide.objective-power": "0"})
    assert (found.objective_power, found.mpp_um) == (None, None)
    assert "'0'" in found.warnings[0]


def test_users_mpp_wins_and_is_recorded_as_the_users() -> None:
    found = read(dict(APERIO), mpp=0.26)
    assert (found.mpp_um, found.mpp_source, found.warnings) == ((0.26, 0.26), MppSource.USER, ())


def test_users_mpp_that_differs_from_the_file_by_more_than_a_fifth_is_warned_of() -> None:
    found = read(dict(APERIO), mpp=0.5)
    assert (found.mpp_um, found.mpp_source) == ((0.5, 0.5), MppSource.USER)
    assert "--mpp 0.5 differs by more than 20% from the 0.25 um that the file states (vendor)" in only_warning(found)


def test_users_objective_power_gives_the_scale_where_the_file_has_none() -> None:
    found = read({"openslide.vendor": "aperio"}, objective_power=20)
    assert (found.mpp_um, found.mpp_source, found.objective_power) == ((0.5, 0.5), MppSource.OBJECTIVE_POWER, 20)
    assert "taken from the objective power given, 20" in only_warning(found)


def test_users_objective_power_does_not_replace_the_mpp_in_the_file() -> None:
    found = read(dict(APERIO), objective_power=20)
    assert (found.mpp_um, found.mpp_source, found.objective_power) == ((0.25, 0.25), MppSource.VENDOR, 20)
    assert "the mpp decides" in only_warning(found)


def test_users_objective_power_that_differs_from_the_file_is_warned_of() -> None:
    found = read({"openslide.vendor": "aperio", "openslide.objective-power": "40"}, objective_power=20)
    assert found.mpp_um == (0.5, 0.5)
    assert "the objective power given, 20, differs from the file's, 40" in found.warnings[0]


@pytest.mark.parametrize("mpp", [0.049, 20.1, 0.0, -1.0, float("nan"), float("inf")])
def test_users_mpp_out_of_range_is_refused_with_the_range_and_the_value(mpp: float) -> None:
    with pytest.raises(SlideError, match=r"--mpp must be in \[0.05, 20\], got .*; give .*a.svs"):
        read(dict(APERIO), mpp=mpp)


@pytest.mark.parametrize("power", [0.0, -20.0, 1000.0, float("nan")])
def test_users_objective_power_out_of_range_is_refused(power: float) -> None:
    with pytest.raises(SlideError, match=r"--objective-power must be in \[0.5, 200\], got "):
        read(dict(APERIO), objective_power=power)


@pytest.mark.parametrize("mpp", [0.05, 20.0])
def test_ends_of_the_mpp_range_are_accepted(mpp: float) -> None:
    assert read(dict(GENERIC), mpp=mpp).mpp_um == (mpp, mpp)


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ('PhysicalSizeX="0.499" PhysicalSizeY="0.5"', (0.499, 0.5)),
        ('PhysicalSizeX="499" PhysicalSizeXUnit="nm" PhysicalSizeY="0.000499" PhysicalSizeYUnit="mm"', (0.499, 0.499)),
        ('PhysicalSizeX="0.25" PhysicalSizeXUnit="µm" PhysicalSizeY="0.25" PhysicalSizeYUnit="µm"', (0.25, 0.25)),
    ],
)
def test_ome_xml_gives_the_mpp_in_any_unit_of_length(attributes: str, expected: tuple[float, float]) -> None:
    found = read(ome(pixels(attributes)))
    assert found.mpp_um == pytest.approx(expected)
    assert (found.mpp_source, found.format) == (MppSource.OME_XML, "ome-tiff")


def test_ome_xml_image_of_the_slides_size_counts_not_the_first() -> None:
    macro = pixels('PhysicalSizeX="15" PhysicalSizeY="15"', width=300, height=200)
    assert read(ome(macro + pixels('PhysicalSizeX="0.5" PhysicalSizeY="0.5"'))).mpp_um == (0.5, 0.5)


def test_ome_xml_wins_over_tiff_tags() -> None:
    tags = {"tiff.ResolutionUnit": "centimeter", "tiff.XResolution": "10000", "tiff.YResolution": "10000"}
    assert read(ome(pixels('PhysicalSizeX="0.5" PhysicalSizeY="0.5"')) | tags).mpp_um == (0.5, 0.5)


def test_ome_xml_gives_the_objective_power() -> None:
    objective = '<Instrument ID="Instrument:0"><Objective ID="Objective:0" NominalMagnification="20.0"/></Instrument>'
    found = read(ome(pixels(""), objective))
    assert (found.objective_power, found.mpp_um) == (20, (0.5, 0.5))


@pytest.mark.parametrize(
    ("properties", "reason"),
    [
        (ome(pixels('PhysicalSizeX="1" PhysicalSizeXUnit="pixel"')), "'pixel', which is no length"),
        (ome('<BinaryOnly MetadataFile="set.companion.ome"/>'), "set.companion.ome"),
        (GENERIC | {"tiff.ImageDescription": "<OME><Image>"}, "cannot be read"),
        (ome(pixels('PhysicalSizeX="half" PhysicalSizeY="half"')), "'half'"),
    ],
)
def test_unusable_ome_xml_is_a_warning_that_says_why(properties: dict[str, str | None], reason: str) -> None:
    found = read(properties)
    assert found.mpp_um is None
    assert reason in found.warnings[0]


def test_bounds_are_the_scanned_area_in_whole_pixels() -> None:
    bounds = {"openslide.bounds-x": "100", "openslide.bounds-y": "50"}
    found = read(APERIO | bounds | {"openslide.bounds-width": "900.5", "openslide.bounds-height": "400"})
    assert found.bounds == Box(100, 50, 901, 400)
    assert "smaller than the plane of 2000 x 1000" in only_warning(found)


def test_bounds_are_cut_to_the_plane() -> None:
    bounds = {"openslide.bounds-x": "-5", "openslide.bounds-y": "50"}
    found = read(APERIO | bounds | {"openslide.bounds-width": "5000", "openslide.bounds-height": "5000"})
    assert found.bounds == Box(0, 50, WIDTH, HEIGHT - 50)


@pytest.mark.parametrize("x", ["5000", "left"])
def test_unusable_bounds_are_a_warning_and_the_plane_counts(x: str) -> None:
    bounds = {"openslide.bounds-x": x, "openslide.bounds-y": "0"}
    found = read(APERIO | bounds | {"openslide.bounds-width": "10", "openslide.bounds-height": "10"})
    assert found.bounds == Box(0, 0, WIDTH, HEIGHT)
    assert "plane" in only_warning(found)


def test_phantom_is_known_by_its_image_description() -> None:
    assert read(APERIO | {"tiff.ImageDescription": "pathnav phantom, seed 7"}).is_phantom
    assert not read(APERIO | {"tiff.ImageDescription": "Aperio Image Library"}).is_phantom


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


def test_mirax_bounds_are_read(shared: Path) -> None:
    with open_slide(shared / "slides" / "mirax-sparse-bounds.mrxs") as slide:
        assert slide.bounds == Box(2304, 1792, 2048, 2816)
