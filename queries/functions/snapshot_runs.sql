-- Runs of consecutive snapshots: one entry of first and last number if no snapshot is missing between them, else one entry per snapshot.
--
-- parameters:
--   numbers  numbers of the snapshots, ascending
-- source: day.state_snapshot numbers the snapshots of a cluster
create macro snapshot_runs(numbers) as if(
    numbers[-1] - numbers[1] = len(numbers) - 1,
    [{ 'first': numbers[1], 'last': numbers[-1] }],
    [{ 'first': number, 'last': number } for number in numbers]
)
