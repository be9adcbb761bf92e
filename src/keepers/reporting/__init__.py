"""Pages one can show to a colleague: summary, figures, one offline HTML file."""
