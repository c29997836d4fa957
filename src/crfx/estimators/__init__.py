"""Takes X and y, gives fitted models and labels; comes after `trainers`, before `cli`."""
