create function pgflow.judge_results(results pgflow.task_result[])
returns setof pgflow.task_verdict
language sql
stable
begin atomic
  select
    result.position::int,
    result.run_id,
    result.step_slug,
    result.task_index,
    step.step_index,
    task.queue_name,
    task.message_id,
    case
      when task.run_id is null then 'unknown'
      when row_number() over (
        partition by result.run_id, result.step_slug, result.task_index
        order by result.position
      ) > 1 then 'repeated'
      when result.attempt <> task.attempts_count then 'superseded'
      when not pgflow.task_is_active(task.status)
        or state.status <> 'started'
        or run.status <> 'started' then 'ended'
      -- Queued again: the attempt that this result belongs to was given up.
      when task.status = 'queued' then 'superseded'
      when result.kind = 'stalled' and pgflow.recovery_boundary(
        task.started_at, step.timeout, task.lease_extended_until
      ) > clock_timestamp() then 'superseded'
      when result.kind = 'success' then
        case
          when step.step_type = 'single'
            and coalesce(jsonb_typeof(result.output), 'null') <> 'array'
            and fed_map.step_slug is not null then 'violates'
          else 'completed'
        end
      when result.kind = 'failure' and task.attempts_count < step.max_attempts then 'retrying'
      else 'exhausted'
    end as verdict,
    result.output,
    result.error_message,
    case
      when result.kind = 'failure' then
        clock_timestamp()
        + make_interval(secs => pgflow.calculate_retry_delay(step.base_delay, task.attempts_count))
    end as visible_at,
    result.kind = 'stalled' as stalled
  from unnest(results) with ordinality as result (
    run_id, step_slug, task_index, attempt, kind, output, error_message, position
  )
  left join lateral (
    select found.*
    from pgflow.step_tasks as found
    where found.run_id = result.run_id
      and found.step_slug = result.step_slug
      and found.task_index = result.task_index
    limit 1
  ) as task on true
  left join lateral (
    select found.status
    from pgflow.step_states as found
    where found.run_id = task.run_id
      and found.step_slug = task.step_slug
    limit 1
  ) as state on true
  left join lateral (
    select found.status
    from pgflow.runs as found
    where found.run_id = task.run_id
    limit 1
  ) as run on true
  left join pgflow.step_options as step
    on step.flow_slug = task.flow_slug
    and step.step_slug = task.step_slug
  left join lateral (
    select target.step_slug
    from pgflow.deps as dep
    cross join lateral (
      select
        found.step_slug,
        found.step_index
      from pgflow.steps as found
      where found.flow_slug = dep.flow_slug
        and found.step_slug = dep.step_slug
        and found.step_type = 'map'
      limit 1
    ) as target
    where dep.flow_slug = step.flow_slug
      and dep.dep_slug = step.step_slug
    order by target.step_index
    limit 1
  ) as fed_map on true;
end;

comment on function pgflow.judge_results(pgflow.task_result[]) is
'Internal: reads what each result means for its task: whether the attempt is still the current one, whether the task may be retried, whether the output has the type that a dependent map needs. Changes nothing; the caller holds the locks.';
