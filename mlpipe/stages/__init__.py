"""The four stages and how they follow each other."""
