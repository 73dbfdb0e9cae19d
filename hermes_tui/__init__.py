"""The interfaces of Hermes: command line, Textual app, plain shell. All of them stand on `hermes_engine`."""
