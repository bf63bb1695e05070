"""Probability distributions: facts about each in standard form, and the methods that follow from them."""
