create function pgflow.heartbeat(worker_id uuid)
returns table (should_stop boolean, reason text)
language sql
begin atomic
  update pgflow.workers as worker
  set last_heartbeat_at = clock_timestamp()
  where worker.worker_id = heartbeat.worker_id;

  -- Workers of pgflow 0.14 have no subscription and may go on all the same.
  select
    standing.errcode is not null as should_stop,
    standing.reason
  from (values (heartbeat.worker_id)) as asked (worker_id)
  left join lateral (
    select
      standing.errcode,
      standing.reason
    from pgflow.worker_standing(asked.worker_id) as standing
    where standing.errcode <> 'PF010'
  ) as standing on true;
end;

comment on function pgflow.heartbeat(uuid) is
'Records that a worker is alive and tells it whether to stop, and why: it is unknown, stopped, deprecated, told to stop or of an older generation, its function is disabled, or its flow is gone. One row always. Live means heard of within 30 seconds, so call it every 10.';
