"""Space: what adds up between rows, and the rows nearest to others, by scan or by graph."""
