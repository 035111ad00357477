"""Documents to text, by Docling, in processes of their own: what a file is, how it is written, what came of it."""
