create function pgflow.prune_data_older_than(retention_interval interval, batch_size int default 1000)
returns table (what text, deleted bigint)
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
declare
  ended_before timestamptz;
  flow_slugs text[];
begin
  if retention_interval is null or retention_interval < interval '0' then
    raise exception using
      errcode = 'PF019',
      message = format('Data can''t be kept for %s.', coalesce(retention_interval::text, 'null')),
      detail = 'retention_interval is how long ago a run must have ended to be deleted; nothing was deleted.',
      hint = 'Pass an interval from 0, for example interval ''30 days''.';
  end if;

  if coalesce(batch_size, 0) < 1 then
    raise exception using
      errcode = 'PF019',
      message = format('A batch of %s runs can''t be deleted.', coalesce(batch_size::text, 'null')),
      detail = 'batch_size is a whole number from 1; nothing was deleted.',
      hint = 'Leave batch_size out, or pass how many runs to delete at most.';
  end if;

  -- Capped at a millennium: the server's dates come to an end.
  ended_before := clock_timestamp() - least(retention_interval, interval '1000 years');

  -- Pruning takes runs before queues, recompilation and deletion queues before runs. So it keeps them away from the
  -- flows that it works on, and leaves alone those that they are at.
  flow_slugs := array(
    select flow.flow_slug
    from pgflow.flows as flow
    where exists (
      select
      from pgflow.runs as run
      where run.flow_slug = flow.flow_slug
        and coalesce(run.completed_at, run.failed_at) < ended_before
    )
  );
  flow_slugs := array(
    select flow.slug
    from unnest(flow_slugs) as flow (slug)
    where pg_try_advisory_xact_lock_shared(pgflow.flow_key(flow.slug))
  );

  return query
  select 'workers', pgflow.prune_workers(ended_before, batch_size);

  return query
  select pruned.what, pruned.deleted
  from pgflow.prune_runs(flow_slugs, ended_before, batch_size) as pruned;
end
$function$;

comment on function pgflow.prune_data_older_than(interval, int) is
'Deletes one batch of runs that ended longer ago than retention_interval, with their step states, tasks and archived messages, and one batch of workers that stopped or fell silent as long ago and whose tasks are gone; of each function and subscription the last worker stays. Runs in progress are not touched, nor what somebody is locking: it is left for the next call. Returns what was deleted (workers, runs, step_states, step_tasks, messages): call it, a transaction each, until all are 0. Raises PF019 for a negative interval or a batch_size under 1.';
