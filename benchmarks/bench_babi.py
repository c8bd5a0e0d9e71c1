"""Training and evaluation speed on bAbI streams; see `lemn bench --help`."""

from lemn_tf.cli import main

if __name__ == "__main__":
    for what in ("train", "evaluate"):
        main(["bench", what])
