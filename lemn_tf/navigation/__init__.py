"""Agents that walk by what they see and what they chose to remember."""
