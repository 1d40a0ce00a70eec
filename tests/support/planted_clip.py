"""A network of open_clip whose weights are set by hand: the bluer an image, the nearer it is to the word "blue".

The patch embedding takes the mean of blue less red, the position embedding adds a constant, and all blocks between pass
on what comes in. After the last layer norm an image is (v, c, ...) / length with v its blueness and c the constant. The
text tower's first block averages over the tokens, and answers (-1, 0, ...) where it read "red", else (1, 0, ...). So
the cosine with "blue" is v / sqrt(v^2 + c^2), which rises with v, and with "red" it is the opposite.
"""

import json
from pathlib import Path
from typing import Any

from support import tiny_clip

BLUENESS, CONSTANT, WORD = 0, 1, 2  # channels of the network
STRENGTH = 1.0


def save_planted(folder: Path) -> Path:
    """Write the network as a folder that `local-dir:` reads."""
    import open_clip
    import torch

    folder.mkdir(parents=True)
    whole = tiny_clip.settings()
    whole["vision_cfg"] |= {"pool_type": "avg", "no_ln_pre": True, "final_ln_after_pool": False}
    preprocess = {"mean": [0.5, 0.5, 0.5], "std": [0.5, 0.5, 0.5]}
    (folder / "open_clip_config.json").write_text(json.dumps({"model_cfg": whole, "preprocess_cfg": preprocess}))
    network = open_clip.create_model(f"local-dir:{folder}", load_weights=False)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.zero_()
        network.logit_scale.fill_(3.0)
        _plant_image_tower(network.visual)
        _plant_text_tower(network)
    torch.save(network.state_dict(), folder / "open_clip_pytorch_model.bin")
    return folder


def _plant_image_tower(tower: Any) -> None:
    patches = tower.conv1.weight  # (width, 3, patch_px, patch_px)
    patches[BLUENESS, 2] = STRENGTH / patches[BLUENESS, 2].numel()
    patches[BLUENESS, 0] = -STRENGTH / patches[BLUENESS, 0].numel()
    tower.positional_embedding[:, CONSTANT] = 1.0
    _pass_on(tower)
    tower.ln_post.weight.fill_(1.0)
    tower.proj[BLUENESS, 0] = tower.proj[CONSTANT, 1] = 1.0


def _plant_text_tower(network: Any) -> None:
    import open_clip

    (red,) = open_clip.get_tokenizer("ViT-B-32").encode("red")
    network.token_embedding.weight[red, WORD] = -1.0
    network.positional_embedding[:, CONSTANT] = 1.0
    _pass_on(network)
    first, width = network.transformer.resblocks[0].attn, network.positional_embedding.shape[1]
    first.in_proj_weight[2 * width + WORD, WORD] = 1.0  # the values; queries and keys are zero: a plain mean
    first.out_proj.weight[WORD, WORD] = 1.0
    network.ln_final.weight[WORD] = 1.0
    network.ln_final.bias[WORD] = 2.5  # between -1.1, which other words come to, and -4, "red" among ten
    network.text_projection[WORD, 0] = 1.0


def _pass_on(tower: Any) -> None:
    """Let the norms before the blocks be norms; the blocks' own weights are zero, so they add nothing."""
    for block in tower.transformer.resblocks:
        block.ln_1.weight.fill_(1.0)
        block.ln_2.weight.fill_(1.0)
