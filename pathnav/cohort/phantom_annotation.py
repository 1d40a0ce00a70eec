"""The regions of a phantom slide as QuPath writes them: GeoJSON polygons in level-0 pixels."""

from typing import Any

import shapely

from pathnav.cohort.phantom_layout import Layout, Region, Tissue

COLOURS = {
    "tumor": [200, 0, 0],
    "glands": [0, 160, 90],
    "lymphoid": [90, 60, 200],
    "fat": [230, 200, 60],
    "stroma": [150, 200, 150],
}


def annotation_document(layout: Layout) -> dict[str, Any]:
    """Return a FeatureCollection: every region, and as `stroma` what of the section no region covers."""
    covered = shapely.union_all([region.shape for region in layout.regions])
    stroma = layout.outline.difference(covered)
    regions = [*reversed(layout.regions), Region(Tissue.STROMA, stroma)]
    return {"type": "FeatureCollection", "features": [_feature(index, region) for index, region in enumerate(regions)]}


def _feature(index: int, region: Region) -> dict[str, Any]:
    name = region.tissue.class_name
    return {
        "type": "Feature",
        "id": f"{index:08d}",
        "geometry": shapely.geometry.mapping(region.shape),
        "properties": {
            "objectType": "annotation",
            "name": region.tissue.name.lower(),
            "classification": {"name": name, "color": COLOURS[name]},
        },
    }
