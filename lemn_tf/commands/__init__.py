"""The subcommands of `lemn`, one file each; `lemn_tf.cli` lists them."""
