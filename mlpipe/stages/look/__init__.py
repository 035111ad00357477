"""Looking at data as people have them: how they are written, and what each column holds. For `init` and `inspect`."""
