create function pgflow.extend_task(
  run_id uuid,
  step_slug text,
  task_index int,
  worker_id uuid,
  attempt int,
  seconds int
)
returns timestamptz
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
declare
  task pgflow.step_tasks;
  boundary timestamptz;
begin
  if coalesce(seconds, 0) < 1 then
    raise exception using
      errcode = 'PF019',
      message = format('A lease can''t be extended by %s seconds.', coalesce(seconds::text, 'null')),
      detail = format('Task %s of step "%s" in run %s.', extend_task.task_index, extend_task.step_slug, extend_task.run_id),
      hint = 'Pass the seconds from now that the work still needs, at least 1.';
  end if;

  -- Before the task and its message, as everywhere: a recompilation takes the flow, then the queue, then the tasks.
  perform pg_advisory_xact_lock_shared(pgflow.flow_key(run.flow_slug))
  from pgflow.runs as run
  where run.run_id = extend_task.run_id;

  update pgflow.step_tasks as held
  set lease_extended_until = greatest(
    held.lease_extended_until,
    clock_timestamp() + make_interval(secs => least(seconds, 31536000))
  )
  where held.run_id = extend_task.run_id
    and held.step_slug = extend_task.step_slug
    and held.task_index = extend_task.task_index
    and held.status = 'started'
    and held.last_worker_id = extend_task.worker_id
    and held.attempts_count = extend_task.attempt
  returning held.* into task;

  if not found then
    return null;
  end if;

  select pgflow.recovery_boundary(task.started_at, step.timeout, task.lease_extended_until)
  into boundary
  from pgflow.step_options as step
  where step.flow_slug = task.flow_slug
    and step.step_slug = task.step_slug;

  perform pgflow.set_visibility(
    array[row(task.queue_name, task.message_id)::pgflow.message_ref],
    array[boundary]
  );

  return boundary;
end
$function$;

comment on function pgflow.extend_task(uuid, text, int, uuid, int, int) is
'Extends the lease of an attempt by seconds, counted from now, and returns the new recovery boundary; a lease never gets shorter. Null, and nothing changed, when the attempt is no longer the caller''s: it ended, was given up, or belongs to another worker. Raises PF019 for less than 1 second.';
