"""Agents and scorers without a model: the floor that a vision-language model has to beat.

Each file is written as a plug-in of anyone's: it imports pathnav's public modules, is reached through an entry point
and calls nothing but the environment (an agent) or the tiles that it is given (a scorer). The rules are those of the
paper's baseline rows; where the paper gives only a name, the module's docstring states the rule.

Window positions, for all agents: a window has the target's size, and any placement whose centre lies in the search
region is legal. A window may stick out of the region; the harness shifts the final box into the slide.
"""
