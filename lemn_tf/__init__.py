"""lemn_tf: a bounded memory over an endless stream that learns what to remember."""
