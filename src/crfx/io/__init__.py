"""Takes models and files, gives files and models; comes after `model`, before `trainers`."""
