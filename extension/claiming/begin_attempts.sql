create function pgflow.begin_attempts(queue_name text, msg_ids bigint[], worker_id uuid, reads int)
returns setof pgflow.claim_outcome
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
declare
  claimed_at timestamptz := clock_timestamp();
  claimed pgflow.step_tasks[];
  boundaries timestamptz[];
begin
  with started as (
    update pgflow.step_tasks as task
    set
      status = 'started',
      attempts_count = task.attempts_count + 1,
      started_at = claimed_at,
      last_worker_id = begin_attempts.worker_id,
      lease_extended_until = null
    where task.queue_name = begin_attempts.queue_name
      and task.message_id = any(begin_attempts.msg_ids)
      and task.status = 'queued'
    returning task.*
  )
  select
    array_agg(started::pgflow.step_tasks),
    array_agg(pgflow.recovery_boundary(started.started_at, step.timeout, started.lease_extended_until))
  into claimed, boundaries
  from started
  inner join pgflow.step_options as step
    on step.flow_slug = started.flow_slug
    and step.step_slug = started.step_slug;

  if claimed is null then
    return;
  end if;

  perform pgflow.set_visibility(
    array(select row(task.queue_name, task.message_id)::pgflow.message_ref from unnest(claimed) as task),
    boundaries,
    begin_attempts.reads
  );

  return query
  with claimed_tasks as materialized (
    select
      task.flow_slug,
      task.run_id,
      task.step_slug,
      task.message_id,
      task.task_index,
      task.attempts_count,
      step.step_type,
      step.deps_count
    from unnest(claimed) as task
    inner join pgflow.steps as step
      on step.flow_slug = task.flow_slug
      and step.step_slug = task.step_slug
  ),
  -- The source of a map is read once for all its tasks in the batch, and only the stretch that they need:
  -- reading it for each task would make the cost of a task grow with the size of its map.
  map_elements as materialized (
    select
      stretch.run_id,
      stretch.step_slug,
      (stretch.first_index + element.position - 1)::int as task_index,
      element.value as input
    from (
      select
        task.flow_slug,
        task.run_id,
        task.step_slug,
        task.deps_count,
        min(task.task_index) as first_index,
        max(task.task_index) as last_index
      from claimed_tasks as task
      where task.step_type = 'map'
      group by task.flow_slug, task.run_id, task.step_slug, task.deps_count
    ) as stretch
    cross join lateral (
      select
        case
          when stretch.deps_count = 0 then (
            select run.input from pgflow.runs as run where run.run_id = stretch.run_id
          )
          else (
            select state.output
            from pgflow.deps as dep
            inner join pgflow.step_states as state
              on state.run_id = stretch.run_id
              and state.step_slug = dep.dep_slug
            where dep.flow_slug = stretch.flow_slug
              and dep.step_slug = stretch.step_slug
          )
        end as elements
    ) as source
    cross join lateral jsonb_array_elements(
      jsonb_path_query_array(
        source.elements,
        'strict $[$first to $last]',
        jsonb_build_object('first', stretch.first_index, 'last', stretch.last_index)
      )
    ) with ordinality as element (value, position)
  )
  select
    task.message_id,
    'claimed',
    null::text,
    task.flow_slug,
    task.run_id,
    task.step_slug,
    task.task_index,
    task.attempts_count,
    case
      when task.step_type = 'map' then map_elements.input
      when task.deps_count = 0 then '{}'
      else pgflow.dependency_outputs(task.run_id, task.flow_slug, task.step_slug)
    end,
    case
      when task.step_type = 'single' and task.deps_count = 0 then (
        select run.input from pgflow.runs as run where run.run_id = task.run_id
      )
    end
  from claimed_tasks as task
  left join map_elements
    on map_elements.run_id = task.run_id
    and map_elements.step_slug = task.step_slug
    and map_elements.task_index = task.task_index
  order by task.message_id;
end
$function$;

comment on function pgflow.begin_attempts(text, bigint[], uuid, int) is
'Internal: starts an attempt of each queued task with one of these messages: counts it, hides the message until the recovery boundary, and returns the task with its input. The caller holds the locks of the tasks and has classified them. reads as in set_visibility().';
