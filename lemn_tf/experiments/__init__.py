"""The experiments as plain functions: data, model, recipe and scoring; commands only call them."""
