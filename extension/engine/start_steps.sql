create function pgflow.start_steps(run_ids uuid[])
returns void
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
declare
  started_runs uuid[];
  started_steps text[];
  batch record;
begin
  with started as (
    update pgflow.step_states as state
    set
      status = 'started',
      started_at = clock_timestamp(),
      remaining_tasks = state.initial_tasks
    from pgflow.ready_steps(run_ids) as ready
    where state.run_id = ready.run_id
      and state.step_slug = ready.step_slug
      and ready.decision = 'start'
    returning state.run_id, state.step_slug
  )
  select array_agg(started.run_id), array_agg(started.step_slug)
  into started_runs, started_steps
  from started;

  if started_runs is null then
    return;
  end if;

  for batch in
    select
      step.queue_name,
      queue_table.oid as queue_table,
      array_agg(started.run_id order by started.run_id, step.step_index) as run_ids,
      array_agg(started.step_slug order by started.run_id, step.step_index) as step_slugs,
      min(step.flow_slug) as flow_slug
    from unnest(started_runs, started_steps) as started (run_id, step_slug)
    inner join pgflow.step_states as state
      on state.run_id = started.run_id
      and state.step_slug = started.step_slug
    inner join pgflow.steps as step
      on step.flow_slug = state.flow_slug
      and step.step_slug = state.step_slug
    left join pg_class as queue_table
      on queue_table.relname = 'q_' || step.queue_name
      and queue_table.relnamespace = 'pgmq'::regnamespace
    group by step.queue_name, queue_table.oid
    order by step.queue_name collate "C"
  loop
    if batch.queue_table is null then
      raise exception using
        errcode = 'PF007',
        message = format('Queue "%s" of flow "%s" is gone from PGMQ.', batch.queue_name, batch.flow_slug),
        detail = format('Steps that were to start on it: %s.', array_to_string(batch.step_slugs, ', ')),
        hint = 'Nothing was changed. Make the queue again with pgmq.create, or compile the flow under a new slug.';
    end if;

    -- The message carries all that names its task, so the ids come back with the rows they belong to,
    -- in whatever order they come.
    execute format(
      $sql$
        with sent as (
          insert into pgmq.%I (vt, message)
          select
            clock_timestamp() + make_interval(secs => step.start_delay),
            jsonb_build_object(
              'flow_slug', state.flow_slug,
              'run_id', state.run_id,
              'step_slug', state.step_slug,
              'task_index', task.task_index
            )
          from unnest($1, $2) with ordinality as started (run_id, step_slug, position)
          inner join pgflow.step_states as state
            on state.run_id = started.run_id
            and state.step_slug = started.step_slug
          inner join pgflow.step_options as step
            on step.flow_slug = state.flow_slug
            and step.step_slug = state.step_slug
          cross join lateral generate_series(0, state.initial_tasks - 1) as task (task_index)
          order by started.position, task.task_index
          returning msg_id, message
        )
        insert into pgflow.step_tasks (flow_slug, run_id, step_slug, task_index, message_id, queue_name, queued_at)
        select
          sent.message ->> 'flow_slug',
          (sent.message ->> 'run_id')::uuid,
          sent.message ->> 'step_slug',
          (sent.message ->> 'task_index')::int,
          sent.msg_id,
          $3,
          clock_timestamp()
        from sent
      $sql$,
      'q_' || batch.queue_name
    )
    using batch.run_ids, batch.step_slugs, batch.queue_name;
  end loop;

  perform pgflow.emit_step_events(started_runs, started_steps);
end
$function$;

comment on function pgflow.start_steps(uuid[]) is
'Internal: starts every ready step of these runs that needs tasks: one task and one message a map element or single step, all messages of a queue in one statement, ids ascending with task_index. Raises PF007 when a queue is gone.';
