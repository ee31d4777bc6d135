"""Compiled loops: each runs once over the rows, interval by interval. Decimals are added as whole numbers.

``offsets`` are the first rows of the intervals and the end of the last one. Each sum has a count of its rows: a sum with count 0
is unknown. Doubles are added in the order of the rows, as DuckDB's one thread does.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpureport.values.runtime.compiled import Number, compiled, inlined

Whole = NDArray[np.int64]
Real = NDArray[np.float64]
Bits = NDArray[np.uint8]
Codes = NDArray[np.int32]
Numbers = NDArray[Any]
"""Decimals as whole numbers of their last place, or doubles."""

_HOUR_US = 3_600_000_000
NONE = -(2**63)
_LAST_BIN = 10_000
UNKNOWN = 4
"""No signal shows whether the device was active. 0: inactive, 1: half of the SMs active or more, 2: fewer, 3: SMs unknown."""


@inlined
def is_known(bits: Bits, row: Number) -> Number:
    """Whether the row's bit is set."""
    return (bits[row >> 3] >> (row & 7)) & 1


@inlined
def whole_ms(microseconds: Number) -> Number:
    """Milliseconds rounded, as DuckDB's ``epoch_ms`` has them."""
    return (microseconds + 500) // 1000


@compiled
def in_milliseconds(seconds: Real) -> Whole:
    """Seconds as whole milliseconds."""
    found = np.empty(seconds.size, np.int64)
    for row in range(seconds.size):
        found[row] = np.int64(np.rint(1000 * seconds[row]))
    return found


@compiled
def intervals(
    device: Codes, instance: Codes, seen_us: Whole, held_ms: Whole, cut_offsets: Whole, cuts_us: Whole
) -> tuple[Whole, Whole, Whole]:
    """(offsets of intervals, their starts, the end of their rows' time; ``NONE`` in hours without a cut)."""
    offsets, starts, reaches = (
        np.empty(device.size + 1, np.int64),
        np.empty(device.size, np.int64),
        np.empty(device.size, np.int64),
    )
    count, cut, last_cut = 0, np.int64(0), np.int64(0)
    for row in range(device.size):
        is_new = row == 0 or device[row] != device[row - 1] or instance[row] != instance[row - 1]
        if is_new:
            cut, last_cut = cut_offsets[device[row]], cut_offsets[device[row] + 1]
        start = seen_us[row] - seen_us[row] % _HOUR_US
        end, reach = start + _HOUR_US, np.int64(NONE)
        while cut < last_cut and cuts_us[cut] < start:
            cut += 1
        if cut < last_cut and cuts_us[cut] < end:
            reach = seen_us[row] + 1000 * max(held_ms[row], 1)
            within = cut
            while within + 1 < last_cut and cuts_us[within + 1] < min(reach, end):
                within += 1
            start = min(seen_us[row], cuts_us[within])
        if is_new or start != starts[count - 1]:
            offsets[count], starts[count], reaches[count] = row, start, reach
            count += 1
        else:
            reaches[count - 1] = max(reaches[count - 1], reach)
    offsets[count] = device.size
    return offsets[: count + 1].copy(), starts[:count].copy(), reaches[:count].copy()


@compiled
def activity(
    util: Whole, util_bits: Bits, engine: Whole, engine_bits: Bits, sm: Whole, sm_bits: Bits,
    sent: Real, sent_bits: Bits, received: Real, received_bits: Bits,
) -> NDArray[np.int8]:  # fmt: skip
    """The activity of the device in each row; see ``UNKNOWN`` for the codes."""
    found = np.empty(util.size, np.int8)
    for row in range(util.size):
        has_util, has_engine, has_sm = is_known(util_bits, row), is_known(engine_bits, row), is_known(sm_bits, row)
        has_sent, has_received = is_known(sent_bits, row), is_known(received_bits, row)
        if (
            (has_util and util[row] > 0)
            or (has_engine and engine[row] >= 1_000)
            or (has_sm and sm[row] >= 1_000)
            or (has_sent and sent[row] >= 1e8)
            or (has_received and received[row] >= 1e8)
        ):
            found[row] = 3 if not has_sm else 1 if sm[row] >= 500_000 else 2
        else:
            found[row] = 0 if has_util or has_engine or has_sm else UNKNOWN
    return found


@compiled
def time_by_activity(offsets: Whole, held_ms: Whole, active: NDArray[np.int8], carried: Bits) -> Whole:
    """For each interval: ms by activity, then rows by activity, and last the number of rows that are not carried over."""
    found = np.zeros((2 * UNKNOWN + 3, offsets.size - 1), np.int64)
    for number in range(offsets.size - 1):
        for row in range(offsets[number], offsets[number + 1]):
            found[active[row], number] += held_ms[row]
            found[UNKNOWN + 1 + active[row], number] += 1
            found[-1, number] += 1 - is_known(carried, row)
    return found


@compiled
def weighed(
    offsets: Whole, held_ms: Whole, weights: Numbers, values: Numbers, bits: Bits
) -> tuple[Whole, Numbers, Numbers, Whole]:
    """(ms with a value, values x weights, largest value, rows with a value)."""
    size = offsets.size - 1
    known_ms, counts = np.zeros(size, np.int64), np.zeros(size, np.int64)
    sums, largest = np.zeros(size, values.dtype), np.zeros(size, values.dtype)
    for number in range(size):
        held, count, weight, top = known_ms[number], counts[number], sums[number], largest[number]
        for row in range(offsets[number], offsets[number + 1]):
            if is_known(bits, row):
                value = values[row]
                held += held_ms[row]
                weight += value * weights[row]
                top = value if count == 0 or value > top else top
                count += 1
        known_ms[number], sums[number], largest[number], counts[number] = held, weight, top, count
    return known_ms, sums, largest, counts


@compiled
def memory_ratio(used: Real, used_bits: Bits, free: Real, free_bits: Bits) -> tuple[Real, Bits]:
    """(used / (used + free), one bit a row for whether it is known)."""
    found, bits = np.zeros(used.size), np.zeros((used.size + 7) // 8, np.uint8)
    for row in range(used.size):
        if is_known(used_bits, row) and is_known(free_bits, row) and used[row] >= 0 and free[row] >= 0:
            whole = used[row] + free[row]
            if whole >= 1 and whole <= 1e18:
                found[row] = used[row] / whole
                bits[row >> 3] |= 1 << (row & 7)
    return found, bits


@compiled
def time_above(offsets: Whole, held_ms: Whole, values: Real, bits: Bits, threshold: Number) -> Whole:
    """Milliseconds of each interval at or above the threshold."""
    found = np.zeros(offsets.size - 1, np.int64)
    for number in range(offsets.size - 1):
        for row in range(offsets[number], offsets[number + 1]):
            if is_known(bits, row) and values[row] >= threshold:
                found[number] += held_ms[row]
    return found


@compiled
def time_by_bin(offsets: Whole, held_ms: Whole, values: Real, bits: Bits, width: Number) -> tuple[Codes, Codes, Codes]:
    """(bins with time, ms in each, rounded to whole s, offsets of the intervals' bins); bins as in ``value_bin``."""
    found = np.zeros(_LAST_BIN + 1, np.int64)
    bins, milliseconds = np.empty(held_ms.size, np.int32), np.empty(held_ms.size, np.int32)
    ends, count = np.zeros(offsets.size, np.int32), 0
    for number in range(offsets.size - 1):
        first, last = _LAST_BIN, 0
        for row in range(offsets[number], offsets[number + 1]):
            if is_known(bits, row) and held_ms[row] > 0:
                bin_number = 0
                if values[row] > 0:
                    bin_number = int(min(max(np.floor(values[row] / width + 0.5), 1.0), float(_LAST_BIN)))
                found[bin_number] += held_ms[row]
                first, last = min(first, bin_number), max(last, bin_number)
        for bin_number in range(first, last + 1):
            if found[bin_number] > 0:
                seconds = max(1, int(np.floor(found[bin_number] / 1000 + 0.5)))
                bins[count], milliseconds[count], found[bin_number] = bin_number, seconds * 1000, 0
                count += 1
        ends[number + 1] = count
    return bins[:count].copy(), milliseconds[:count].copy(), ends


@compiled
def sampled_in(device: Codes, instance: Codes, seen_us: Whole, cut_offsets: Whole, cuts_us: Whole) -> tuple[Whole, Whole]:
    """(first rows of the intervals and their end, starts in µs); a row belongs to the interval in which it was sampled."""
    offsets, starts = np.empty(device.size + 1, np.int64), np.empty(device.size, np.int64)
    count, cut = 0, np.int64(0)
    for row in range(device.size):
        is_new = row == 0 or device[row] != device[row - 1] or instance[row] != instance[row - 1]
        if is_new:
            cut = cut_offsets[device[row]]
        while cut < cut_offsets[device[row] + 1] and cuts_us[cut] <= seen_us[row]:
            cut += 1
        start = seen_us[row] - seen_us[row] % _HOUR_US
        if cut > cut_offsets[device[row]]:
            start = max(start, cuts_us[cut - 1])
        if is_new or start != starts[count - 1]:
            offsets[count], starts[count] = row, start
            count += 1
    offsets[count] = device.size
    return offsets[: count + 1].copy(), starts[:count].copy()


@compiled
def memory_size(
    offsets: Whole, total: Real, total_bits: Bits, used: Real, used_bits: Bits, free: Real, free_bits: Bits,
    reserved: Real, reserved_bits: Bits,
) -> tuple[Real, Whole]:  # fmt: skip
    """(largest total memory: the total, else used + free + reserved; rows with a value)."""
    largest, counts = np.zeros(offsets.size - 1), np.zeros(offsets.size - 1, np.int64)
    for number in range(offsets.size - 1):
        for row in range(offsets[number], offsets[number + 1]):
            if is_known(total_bits, row):
                value = total[row]
            elif is_known(used_bits, row) and is_known(free_bits, row) and is_known(reserved_bits, row):
                value = used[row] + free[row] + reserved[row]
            else:
                continue
            if counts[number] == 0 or value > largest[number]:
                largest[number] = value
            counts[number] += 1
    return largest, counts


@compiled
def time_by_bit(offsets: Whole, held_ms: Whole, masks: Codes, bits: Bits, any_of: Number) -> tuple[Whole, Whole]:
    """(ms with a value, ms with each of the eight lowest bits, ms with any of ``any_of``; rows with a value)."""
    found, counts = np.zeros((10, offsets.size - 1), np.int64), np.zeros(offsets.size - 1, np.int64)
    for number in range(offsets.size - 1):
        for row in range(offsets[number], offsets[number + 1]):
            if is_known(bits, row) and masks[row] >= 0:
                counts[number] += 1
                found[0, number] += held_ms[row]
                if masks[row] & any_of:
                    found[9, number] += held_ms[row]
                    for bit in range(8):
                        if masks[row] >> bit & 1:
                            found[1 + bit, number] += held_ms[row]
    return found, counts


@compiled
def growth(
    offsets: Whole, held_ms: Whole, value_bits: Bits, increase: Numbers, bits: Bits, gap: Real, gap_bits: Bits
) -> tuple[Whole, Numbers, Whole, Whole, Real, Whole]:
    """(ms of known growth, growth, rows with known growth; rows with a value; growth over gaps, rows that end a gap)."""
    size = offsets.size - 1
    known_ms, counts = np.zeros(size, np.int64), np.zeros(size, np.int64)
    values, gaps = np.zeros(size, np.int64), np.zeros(size, np.int64)
    sums, gap_sums = np.zeros(size, increase.dtype), np.zeros(size)
    for number in range(size):
        held, grown, count, value_count = known_ms[number], sums[number], counts[number], values[number]
        for row in range(offsets[number], offsets[number + 1]):
            value_count += is_known(value_bits, row)
            if is_known(bits, row):
                held += held_ms[row]
                grown += increase[row]
                count += 1
            if is_known(gap_bits, row):
                gap_sums[number] += gap[row]
                gaps[number] += 1
        known_ms[number], sums[number], counts[number], values[number] = held, grown, count, value_count
    return known_ms, sums, counts, values, gap_sums, gaps


@inlined
def as_double(whole: Number, scale: Number) -> Number:
    """A decimal as a double, as DuckDB does it: in two parts where a double does not hold all its digits."""
    if abs(whole) <= 2**53:
        return whole / scale
    unit = np.int64(scale)
    rest = abs(whole) % unit
    return np.float64(whole // unit) + rest / scale if whole > 0 else np.float64(-(-whole // unit)) - rest / scale


@inlined
def add(sums: Whole, counts: Whole, name: Number, number: Number, amount: Number) -> None:
    """Add an amount to one sum of an interval, and one to its row count."""
    sums[name, number] += amount
    counts[name, number] += 1


@compiled
def energy(
    offsets: Whole, held_ms: Whole, active: NDArray[np.int8], power: Whole, power_bits: Bits,
    increase: Whole, increase_bits: Bits, counter_bits: Bits,
) -> tuple[Whole, Whole, Real]:  # fmt: skip
    """(sums as in ``saturation._ENERGY``, rows in each, J of work that began within rows that look inactive)."""
    size = offsets.size - 1
    sums, counts, begun = np.zeros((11, size), np.int64), np.zeros((12, size), np.int64), np.zeros(size)
    for number in range(size):
        for row in range(offsets[number], offsets[number + 1]):
            held, is_active, is_unknown = held_ms[row], active[row] != 0, active[row] == UNKNOWN
            has_power, drawn = is_known(power_bits, row), power[row] * held
            if is_known(increase_bits, row):
                if has_power:
                    add(sums, counts, 0, number, drawn)
                    add(sums, counts, 10, number, increase[row])
                    if not is_active and (increase[row] == 0 or 10 * increase[row] > 11 * drawn):
                        begun[number] += as_double(increase[row], 1e6) - as_double(power[row], 1e3) * held / 1000
                        counts[11, number] += 1
                if is_active:
                    add(sums, counts, 1, number, held)
                    add(sums, counts, 2, number, increase[row])
                if is_unknown:
                    add(sums, counts, 3, number, held)
            elif has_power and not is_known(counter_bits, row):
                add(sums, counts, 4, number, held)
                add(sums, counts, 5, number, drawn)
                if is_active:
                    add(sums, counts, 6, number, held)
                    add(sums, counts, 7, number, drawn)
                if is_unknown:
                    add(sums, counts, 8, number, held)
            if has_power and is_active:
                sums[9, number] = max(sums[9, number], power[row]) if counts[9, number] else power[row]
                counts[9, number] += 1
    return sums, counts, begun


@compiled
def idle_rows(
    device: Codes, instance: Codes, board: Number, seen_us: Whole, active: NDArray[np.int8], of_instance: NDArray[np.int8],
    power_bits: Bits,
) -> NDArray[np.int8]:  # fmt: skip
    """Whether each row is of a whole GPU, has power, and shows no activity, nor does an instance's row of the same time."""
    found = np.zeros(device.size, np.int8)
    first, beside = 0, 0
    for row in range(device.size):
        if row == 0 or device[row] != device[row - 1]:
            first = beside = row
        elif instance[row] != instance[row - 1]:
            beside = first
        if instance[row] == board:
            found[row] = is_known(power_bits, row) and active[row] % UNKNOWN == 0
        elif of_instance[row] % UNKNOWN != 0:
            while instance[beside] == board and seen_us[beside] < seen_us[row]:
                beside += 1
            if seen_us[beside] == seen_us[row]:
                found[beside] = 0
    return found


@compiled
def idle_by_watt(
    offsets: Whole, device: Codes, is_idle: NDArray[np.int8], seen_us: Whole, held_ms: Whole, power: Whole,
    run_offsets: Whole, run_starts_us: Whole, run_ends_us: Whole,
) -> tuple[Whole, Whole, Whole]:  # fmt: skip
    """(numbers of intervals, whole watts, ms of idle rows outside the device's runs of allocation); power in mW."""
    found = np.zeros(_LAST_BIN + 1, np.int64)
    numbers, bins, milliseconds = np.empty_like(held_ms), np.empty_like(held_ms), np.empty_like(held_ms)
    count = 0
    for number in range(offsets.size - 1):
        run, last_run = run_offsets[device[offsets[number]]], run_offsets[device[offsets[number]] + 1]
        first, last = _LAST_BIN, 0
        for row in range(offsets[number], offsets[number + 1]):
            if is_idle[row]:
                start, idle_ms = whole_ms(seen_us[row]), held_ms[row]
                end = start + idle_ms
                while run < last_run and whole_ms(run_ends_us[run]) <= start:
                    run += 1
                taken = run
                while taken < last_run and whole_ms(run_starts_us[taken]) < end:
                    idle_ms -= min(whole_ms(run_ends_us[taken]), end) - max(whole_ms(run_starts_us[taken]), start)
                    taken += 1
                if idle_ms > 0:
                    watts = min(max((power[row] + 500) // 1000, 0), _LAST_BIN)
                    found[watts] += idle_ms
                    first, last = min(first, watts), max(last, watts)
        for watts in range(first, last + 1):
            if found[watts] > 0:
                numbers[count], bins[count], milliseconds[count], found[watts] = number, watts, found[watts], 0
                count += 1
    return numbers[:count].copy(), bins[:count].copy(), milliseconds[:count].copy()


@compiled
def within(
    found: Whole, series: Whole, seen_us: Whole, held_seconds: Real, value: Real,
    of_line: Whole, starts_us: Whole, ends_us: Whole, slots: Whole, is_added: NDArray[np.bool_],
    counts: Whole, held_ms: Whole, sums: Real, largest: Real,
) -> int:  # fmt: skip
    """Number of samples in force within the time of a line; ``found`` gets the line, row, start and end (µs) of each.

    Lines are in order of series and start. Samples of a line with ``is_added`` are not counted: they are added to the sums of
    their hour's slot. The first call has no space in ``found`` and adds; the second call only fills it.
    """
    count, first, stop = 0, 0, 0
    for row in range(series.size):
        seen = seen_us[row]
        if row == 0 or series[row] != series[row - 1] or seen < seen_us[row - 1]:
            first = np.searchsorted(of_line, series[row])
            stop = np.searchsorted(of_line, series[row], "right")
        while first < stop and ends_us[first] <= seen:
            first += 1
        for line in range(first, stop):
            start, end = max(seen, starts_us[line]), seen + 1000 * np.int64(np.floor(1000 * held_seconds[row] + 0.5))
            if end <= starts_us[line]:
                break
            end = min(end, ends_us[line])
            if seen < ends_us[line] and not is_added[line]:
                if count < found.shape[1]:
                    found[0, count], found[1, count], found[2, count], found[3, count] = line, row, start, end
                count += 1
            elif seen < ends_us[line] and not found.shape[1]:
                slot, held = slots[line] + start // _HOUR_US, (end - start) // 1000
                largest[slot] = value[row] if counts[slot] == 0 or value[row] > largest[slot] else largest[slot]
                counts[slot] += 1
                held_ms[slot] += held
                sums[slot] += value[row] * held
    return count


@compiled
def mig_energy(
    seen_us: Whole, held_ms: Whole, active: NDArray[np.int8], ratios: Whole, instances: Whole, step_us: Whole, steps: Real
) -> tuple[Whole, Whole, Real, bool]:
    """(sums in 1e-12, values in each, largest watts, whether a sum is too large or negative); arrays as ``mig`` makes them."""
    interval, starts_us, first_step, end_step, at, end_row, holders, slices, signal = instances
    count, first, is_odd, terms = interval.size, 0, False, np.empty(12)
    sums, counts, watts = np.zeros((13, count), np.int64), np.zeros((13, count), np.int64), np.full((2, count), np.nan)
    ratio, cut, kepler = np.zeros((3, count), np.int64)
    while first < count:
        end, start = first, starts_us[first]
        while end < count and interval[end] == interval[first]:
            while at[end] < end_row[end] and seen_us[at[end]] + 1000 * held_ms[at[end]] <= start:
                at[end] += 1
            end += 1
        for step in range(first_step[first], end_step[first]):
            observed, seconds, idle, above, above_watts, begun, shown = steps[:, step]
            now = step_us[step]
            all_cut, all_slices, all_kepler, is_reported = 0, 0, 0, True
            for each in range(first, end):
                while at[each] + 1 < end_row[each] and seen_us[at[each] + 1] <= now:
                    at[each] += 1
                row, ratio[each] = at[each], NONE
                if row < end_row[each] and seen_us[row] <= now < seen_us[row] + 1000 * held_ms[row]:
                    ratio[each] = ratios[signal[each], row]
                    shown = np.fmax(shown, min(active[row], 1) if active[row] != UNKNOWN else np.nan)
                cut[each] = min(1_000_000, max(0, ratio[each]))
                kepler[each] = max(0, ratio[each]) if holders[each] > 0 else 0
                counts[12, each] += ratio[each] != NONE
                sums[12, each] += ratio[each] != NONE and ratio[each] != cut[each]
                is_reported &= ratio[each] != NONE or holders[each] == 0
                all_cut += cut[each]
                all_slices += cut[each] * slices[each]
                all_kepler += kepler[each]
            is_reported &= all_cut > 0
            joules, counted = (above, seconds) if shown else (begun, 0.0)
            per_slice = joules / (all_slices / 1e6) if is_reported else 0 * joules
            per_ratio = joules / (all_cut / 1e6) if is_reported else 0 * joules
            per_kepler = above / as_double(all_kepler, 1e6) if all_kepler > 0 else 0 * above
            terms[:4] = observed, seconds, counted, seconds if np.isnan(shown) else 0.0
            terms[4:7] = 0.0 if is_reported else counted, above - joules, idle
            terms[10:] = 0.0 if is_reported else joules, above
            for each in range(first, end):
                part = cut[each] / 1e6
                terms[7:10] = part * per_slice, part * per_ratio, as_double(kepler[each], 1e6) * per_kepler
                for name in range(12):
                    if not np.isnan(terms[name]):
                        add(sums, counts, name, each, np.int64(np.rint(terms[name] * 1e12)))
                        is_odd |= not (abs(terms[name]) < 4e6 and 0 <= sums[name, each] < 2**62)
                if shown:
                    peak = part * (above_watts / (all_slices / 1e6)) if is_reported else above_watts
                    watts[int(is_reported), each] = np.fmax(watts[int(is_reported), each], peak)
        first = end
    return sums, counts, watts, is_odd
