"""Read what other people and programs wrote: texts, tables, images, pickles, models of the Hub."""
