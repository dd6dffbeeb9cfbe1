create function pgflow.start_steps(run_ids uuid[], step_slugs text[])
returns void
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
declare
  batch record;
  msg_ids bigint[];
begin
  for batch in
    with started as (
      update pgflow.step_states as state
      set
        status = 'started',
        started_at = clock_timestamp(),
        remaining_tasks = state.initial_tasks
      from (
        select every.run_id, every.step_slug
        from unnest(run_ids, step_slugs) as every (run_id, step_slug)
        limit cardinality(run_ids)
      ) as ready
      where state.run_id = ready.run_id
        and state.step_slug = ready.step_slug
      returning state.run_id, state.flow_slug, state.step_slug, state.initial_tasks as task_count
    )
    select
      step.queue_name,
      step.flow_slug,
      array_agg(
        row(started.run_id, started.step_slug, task.task_index, step.start_delay)::pgflow.new_task
        order by started.run_id, step.step_index, task.task_index
      ) as tasks
    from started
    cross join lateral (
      select every.flow_slug, every.step_index, every.queue_name, every.start_delay
      from pgflow.step_options as every
      where every.flow_slug = started.flow_slug
        and every.step_slug = started.step_slug
      limit 1
    ) as step
    cross join lateral generate_series(0, started.task_count - 1) as task (task_index)
    group by step.queue_name, step.flow_slug
    order by step.queue_name collate "C"
  loop
    if to_regclass(format('pgmq.%I', 'q_' || batch.queue_name)) is null then
      raise exception using
        errcode = 'PF007',
        message = format('Queue "%s" of flow "%s" is gone from PGMQ.', batch.queue_name, batch.flow_slug),
        detail = format(
          'Steps that were to start on it: %s. Nothing was changed.', (select string_agg(distinct task.step_slug, ', ') from unnest(batch.tasks) as task)
        ),
        hint = format('Make it again with select * from pgflow.repair_queues(%L).', batch.flow_slug);
    end if;

    -- Rows get their ids in the order in which they come, so the ids in their order are those of the tasks in theirs.
    execute format(
      $sql$
        with sent as (
          insert into pgmq.%I (vt, message)
          select
            clock_timestamp() + make_interval(secs => task.start_delay),
            jsonb_build_object(
              'flow_slug', $2, 'run_id', task.run_id, 'step_slug', task.step_slug, 'task_index', task.task_index
            )
          from unnest($1) as task
          returning msg_id
        )
        select array_agg(msg_id order by msg_id) from sent
      $sql$,
      'q_' || batch.queue_name
    )
    into msg_ids
    using batch.tasks, batch.flow_slug;

    insert into pgflow.step_tasks (flow_slug, run_id, step_slug, task_index, message_id, queue_name, queued_at)
    select
      batch.flow_slug,
      task.run_id,
      task.step_slug,
      task.task_index,
      task.message_id,
      batch.queue_name,
      clock_timestamp()
    from rows from (unnest(batch.tasks), unnest(msg_ids))
      as task (run_id, step_slug, task_index, start_delay, message_id);
  end loop;

  perform pgflow.emit_step_events(run_ids, step_slugs);
end
$function$;

comment on function pgflow.start_steps(uuid[], text[]) is
'Internal: starts steps that are ready and need tasks: one task and one message a map element or single step, all messages of a queue in one statement, ids ascending with task_index. Raises PF007 when a queue is gone.';
