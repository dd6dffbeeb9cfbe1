create function pgflow.worker_is_live(worker pgflow.workers, within interval default interval '30 seconds')
returns boolean
language sql
stable
parallel safe
begin atomic
  select
    (worker).stopped_at is null
    and (worker).deprecated_at is null
    and (worker).last_heartbeat_at > clock_timestamp() - within;
end;

comment on function pgflow.worker_is_live(pgflow.workers, interval) is
'Whether a worker counts as live: not stopped, not deprecated, and heard of within the given interval.';
