create function pgflow.start_steps(run_ids uuid[])
returns void
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
declare
  started_runs uuid[];
  started_flows text[];
  started_steps text[];
  task_counts int[];
  batch record;
begin
  with started as (
    update pgflow.step_states as state
    set
      status = 'started',
      started_at = clock_timestamp(),
      remaining_tasks = state.initial_tasks
    from (
      select found.run_id, found.step_slug
      from pgflow.ready_steps(run_ids) as found
      where found.decision = 'start'
      limit 1000000000 * cardinality(run_ids)::bigint
    ) as ready
    where state.run_id = ready.run_id
      and state.step_slug = ready.step_slug
    returning state.run_id, state.flow_slug, state.step_slug, state.initial_tasks
  )
  select
    array_agg(started.run_id),
    array_agg(started.flow_slug),
    array_agg(started.step_slug),
    array_agg(started.initial_tasks)
  into started_runs, started_flows, started_steps, task_counts
  from started;

  if started_runs is null then
    return;
  end if;

  for batch in
    select
      step.queue_name,
      queue_table.oid as queue_table,
      step.flow_slug,
      array_agg(started.run_id order by started.run_id, step.step_index) as run_ids,
      array_agg(started.step_slug order by started.run_id, step.step_index) as step_slugs,
      array_agg(started.task_count order by started.run_id, step.step_index) as task_counts,
      array_agg(step.start_delay order by started.run_id, step.step_index) as start_delays
    from unnest(started_runs, started_flows, started_steps, task_counts)
      as started (run_id, flow_slug, step_slug, task_count)
    inner join pgflow.step_options as step
      on step.flow_slug = started.flow_slug
      and step.step_slug = started.step_slug
    left join pg_class as queue_table
      on queue_table.relname = 'q_' || step.queue_name
      and queue_table.relnamespace = 'pgmq'::regnamespace
    group by step.queue_name, queue_table.oid, step.flow_slug
    order by step.queue_name collate "C"
  loop
    if batch.queue_table is null then
      raise exception using
        errcode = 'PF007',
        message = format('Queue "%s" of flow "%s" is gone from PGMQ.', batch.queue_name, batch.flow_slug),
        detail = format(
          'Steps that were to start on it: %s. Nothing was changed.', array_to_string(batch.step_slugs[1:10], ', ')
        ),
        hint = format('Make it again with select * from pgflow.repair_queues(%L).', batch.flow_slug);
    end if;

    -- The message carries all that names its task, so the ids come back with the rows they belong to,
    -- in whatever order they come.
    execute format(
      $sql$
        with sent as (
          insert into pgmq.%I (vt, message)
          select
            clock_timestamp() + make_interval(secs => started.start_delay),
            jsonb_build_object(
              'flow_slug', $5,
              'run_id', started.run_id,
              'step_slug', started.step_slug,
              'task_index', task.task_index
            )
          from unnest($1, $2, $3, $4) with ordinality
            as started (run_id, step_slug, task_count, start_delay, position)
          cross join lateral generate_series(0, started.task_count - 1) as task (task_index)
          order by started.position, task.task_index
          returning msg_id, message
        )
        insert into pgflow.step_tasks (flow_slug, run_id, step_slug, task_index, message_id, queue_name, queued_at)
        select
          $5,
          (sent.message ->> 'run_id')::uuid,
          sent.message ->> 'step_slug',
          (sent.message ->> 'task_index')::int,
          sent.msg_id,
          $6,
          clock_timestamp()
        from sent
      $sql$,
      'q_' || batch.queue_name
    )
    using
      batch.run_ids, batch.step_slugs, batch.task_counts, batch.start_delays, batch.flow_slug, batch.queue_name;
  end loop;

  perform pgflow.emit_step_events(started_runs, started_steps);
end
$function$;

comment on function pgflow.start_steps(uuid[]) is
'Internal: starts every ready step of these runs that needs tasks: one task and one message a map element or single step, all messages of a queue in one statement, ids ascending with task_index. Raises PF007 when a queue is gone.';
