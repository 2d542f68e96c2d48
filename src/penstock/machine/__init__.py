"""What drives the engine from outside: calibration and warm-up."""
