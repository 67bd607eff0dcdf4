"""The interactive console, as `python3 cli.py`: the same as `srearena shell`."""

from srearena.conductor.serving.console import Console

if __name__ == "__main__":
    Console().loop()
