"""The properties of the contract that are tried with many examples; slow forms of a store leave
them to a fast one."""

KEPT = ("test_any_row_comes_back_equal", "test_a_row_that_replaces_another_leaves_nothing_of_it")
READ = (
    "test_any_condition_picks_the_rows_that_it_matches",
    "test_searches_let_through_what_finding_does", "test_the_pages_together_are_the_whole",
    "test_any_vector_is_ranked_by_its_cosine",
    "test_the_statistics_are_of_exactly_the_visible_rows",
    "test_what_a_reader_cannot_see_moves_no_answer",
)  # fmt: skip
