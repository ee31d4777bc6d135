"""XID: the last code stands until the driver is reset, repeats cannot be seen, and each code may be a series of its own."""

from __future__ import annotations

from traps.results import Results, samples


@samples("DCGM_FI_DEV_XID_ERRORS{$gpu,$p} 0 0 31 31 31 43 43 43")
def test_t5_dcgm_277_a_code_that_stands_is_one_error(results: Results) -> None:
    # 0 → 31 → 43: two, not the five samples that show a code.
    assert (results.container()["xid_error_count"], results.container()["xid_codes"]) == (2, [31, 43])


@samples("DCGM_FI_DEV_XID_ERRORS{$gpu,$p} 13 13 13 13")
def test_t5_a_code_that_stood_before_is_nobodys_now(results: Results) -> None:
    assert (results.container()["xid_error_count"], results.container()["xid_codes"]) == (0, [])


@samples("DCGM_FI_DEV_XID_ERRORS{$gpu,$p} 0 31 31 31 0 0 31 31")
def test_t5_dcgm_exporter_190_the_same_code_counts_again_only_where_it_was_cleared(results: Results) -> None:
    # What came between the three 31s cannot be told: one; after the reset to 0 another: two, a lower bound.
    assert (results.container()["xid_error_count"], results.container()["xid_codes"]) == (2, [31])


@samples("""
    DCGM_FI_DEV_XID_ERRORS{$gpu,$p} 0 0 _ _ _ _
    DCGM_FI_DEV_XID_ERRORS{$gpu,$p,err_code="31",err_msg="GPU memory page fault"} _ _ 31 31 _ _
    DCGM_FI_DEV_XID_ERRORS{$gpu,$p,err_code="94",err_msg="Contained ECC error"} _ _ _ _ 94 94
""")
def test_t5_dcgm_exporter_500_each_code_is_a_series_and_the_device_has_one_history(results: Results) -> None:
    assert (results.container()["xid_error_count"], results.container()["xid_codes"]) == (2, [31, 94])


@samples("""
    DCGM_FI_DEV_XID_ERRORS{$gpu,$p,instance="10.0.0.1:9400"} 0 31 31 _ _ _
    DCGM_FI_DEV_XID_ERRORS{$gpu,$p,instance="10.0.0.2:9400"} _ _ _ 31 31 31
""")
def test_t5_dcgm_exporter_502_an_exporter_that_restarts_repeats_no_error(results: Results) -> None:
    assert (results.container()["xid_error_count"], results.container()["xid_codes"]) == (1, [31])


@samples("""
    DCGM_FI_DEV_XID_ERRORS{$gpu,$p} _ _ _ 79 79 79
    DCGM_FI_DEV_GPU_UTIL{$gpu,$p} 50x5
""")
def test_t5_dcgm_exporter_700_a_series_that_appears_with_its_first_code_is_an_error(results: Results) -> None:
    # The device was seen before, without a code.
    assert (results.container()["xid_error_count"], results.container()["xid_codes"]) == (1, [79])


@samples("""
    DCGM_FI_DEV_XID_ERRORS{$gpu,$p,vgpu="0"} 0 0 48 48
    DCGM_FI_DEV_XID_ERRORS{$gpu,$q,vgpu="1"} 0 0 48 48
""")
def test_t5_an_error_that_two_sharers_see_is_the_devices_one(results: Results) -> None:
    assert results.device()["xid_error_count"] == 1
    assert [results.container(pod)["xid_error_count"] for pod in ("p", "q")] == [1, 1]


@samples("""
    DCGM_FI_DEV_XID_ERRORS{$gpu,$p} 0 0 0 0 0 0
    DCGM_FI_DEV_XID_ERRORS{$gpu,$q} _ _ _ _ _ _ 31 31 31
""")
def test_t5_an_error_belongs_to_who_holds_the_device_when_it_appears(results: Results) -> None:
    assert results.container("p")["xid_error_count"] == 0
    assert results.container("q")["xid_error_count"] == 1


@samples("""
    DCGM_EXP_XID_ERRORS_COUNT{$gpu,$p,xid="94",window_size_in_ms="300000"} 0 1 1 1 1 1 0 0
    DCGM_FI_DEV_GPU_UTIL{$gpu,$p} 50x7
""")
def test_dcgm_exporter_620_errors_of_the_last_five_minutes_are_not_added_up(results: Results) -> None:
    # One error, shown by five scrapes: one or unknown, never five.
    assert results.container()["xid_error_count"] in (None, 1)


@samples("DCGM_FI_DEV_XID_ERRORS{$gpu,$p} 0 0 2147483632 2147483632 0 0")
def test_a_blank_is_no_code(results: Results) -> None:
    assert (results.container()["xid_error_count"], results.container()["xid_codes"]) == (0, [])
    assert results.dropped("xid_code") == {"blank": 2}
