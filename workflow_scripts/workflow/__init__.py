"""What runs around the rules: one run at a time, dvc.yaml, the picture of the workflow."""
