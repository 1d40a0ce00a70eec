"""Image-text retrieval: windows of a slide against a finding's words.

model = load(ModelChoice("ViT-B-32", checkpoint="weights.pt"))
likeness = model.encode_images(windows) @ finding_vector(model, "invasive carcinoma")
"""

from pathnav.retrieval.choice import ModelChoice
from pathnav.retrieval.embeddings import EmbeddingStore
from pathnav.retrieval.loading import load
from pathnav.retrieval.model import ImageTextModel
from pathnav.retrieval.prompts import FINDING_TEMPLATES, Contrast, contrast_of, finding_vector
from pathnav.retrieval.windows import WindowGrid, peaks

__all__ = [
    "FINDING_TEMPLATES",
    "Contrast",
    "EmbeddingStore",
    "ImageTextModel",
    "ModelChoice",
    "WindowGrid",
    "contrast_of",
    "finding_vector",
    "load",
    "peaks",
]
