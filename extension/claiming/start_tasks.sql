create function pgflow.start_tasks(flow_slug text, msg_ids bigint[], worker_id uuid)
returns setof pgflow.step_task_record
language plpgsql
set search_path to pg_catalog, pg_temp
set plan_cache_mode to force_generic_plan
set enable_seqscan to off
set enable_indexscan to off
set enable_indexonlyscan to off
set jit to off
as $function$
declare
  flow pgflow.flows;
  worker pgflow.workers;
  queue text := lower(start_tasks.flow_slug collate "C");
  locked bigint[];
begin
  -- Gives way to a recompilation, as every claim does.
  if not pg_try_advisory_xact_lock_shared(pgflow.flow_key(start_tasks.flow_slug)) then
    return;
  end if;

  select candidate.* into flow from pgflow.flows as candidate where candidate.flow_slug = start_tasks.flow_slug;

  if flow.queue_mode = 'step' then
    raise exception using
      errcode = 'PF010',
      message = format('start_tasks() can''t claim for flow "%s": every step of it has a queue of its own.', flow.flow_slug),
      detail = format('Its queue mode is "step"; %s messages were passed, none was changed.', coalesce(cardinality(msg_ids), 0)),
      hint = 'Register a worker for one step with register_worker() and use poll_tasks() or claim_tasks().';
  end if;

  select candidate.*
  into worker
  from pgflow.workers as candidate
  where candidate.worker_id = start_tasks.worker_id
  for share;

  if not found then
    raise exception using
      errcode = 'PF013',
      message = format('Worker %s is not known.', coalesce(start_tasks.worker_id::text, 'null')),
      detail = format('It wants to claim for flow "%s"; no message was changed.', start_tasks.flow_slug),
      hint = 'Its row in pgflow.workers was never written, or was removed. Start the worker again.';
  end if;

  -- Workers of pgflow 0.14 are not told why: they get nothing, and hear the rest by their heartbeat.
  if flow.flow_slug is null
    or worker.stop_reason is not null
    or exists (
      select
      from pgflow.worker_functions as function
      where function.function_name = worker.function_name
        and not function.enabled
    )
    or exists (
      select
      from pgflow.fences as fence
      where fence.flow_slug = start_tasks.flow_slug
        and fence.restored_at is null
    )
  then
    return;
  end if;

  worker.queue_name := queue;
  worker.flow_slug := flow.flow_slug;
  worker.step_slug := null;
  locked := pgflow.lock_tasks(queue, msg_ids);

  return query
  select
    attempt.flow_slug,
    attempt.run_id,
    attempt.step_slug,
    attempt.input,
    attempt.msg_id,
    attempt.task_index,
    attempt.flow_input
  from pgflow.claim_queued(
    worker,
    array(
      select message.msg_id
      from pgflow.classify_messages(queue, start_tasks.flow_slug, null, locked) as message
      where message.class = 'claimable'
      order by message.msg_id
    ),
    0
  ) as attempt
  where attempt.outcome = 'claimed';
end
$function$;

comment on function pgflow.start_tasks(text, bigint[], uuid) is
'Claims the tasks of messages that the caller has read from a flow-mode flow''s queue, and returns them with their input. Commit the read first: one transaction that reads and claims holds messages while it waits for tasks, and can deadlock with a fence. Ids that are not queued tasks of a started step are ignored; a worker that was told to stop, of a disabled function or of a fenced flow gets no rows. Raises PF010 for a step-mode flow, PF013 for a worker without a row. As in pgflow 0.14.';
