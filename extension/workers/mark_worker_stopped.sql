create function pgflow.mark_worker_stopped(worker_id uuid)
returns void
language sql
begin atomic
  update pgflow.workers as worker
  set stopped_at = clock_timestamp()
  where worker.worker_id = mark_worker_stopped.worker_id
    and worker.stopped_at is null;
end;

comment on function pgflow.mark_worker_stopped(uuid) is
'Records that a worker has stopped; it can neither claim nor register again. An unknown worker, or one that has stopped before, changes nothing. As in pgflow 0.14.';
