"""tf.data pipelines: from files to episodes of ids or frames; they know nothing about models."""
