create function pgflow.judge_results(results pgflow.task_result[])
returns pgflow.task_verdict[]
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
begin
  -- Locks the tasks in the order of step and task, and judges each as it is once its lock is there: all else that is read
  -- changes only under the locks of the runs, which the caller holds.
  return array(
    select
      row(
        named.position,
        named.run_id,
        named.step_slug,
        named.task_index,
        named.step_index,
        task.queue_name,
        task.message_id,
        case
          when task.run_id is null then 'unknown'
          when named.turn > 1 then 'repeated'
          when named.attempt <> task.attempts_count then 'superseded'
          when not pgflow.task_is_active(task.status)
            or named.state_status <> 'started'
            or named.run_status <> 'started' then 'ended'
          -- Queued again: the attempt that this result belongs to was given up.
          when task.status = 'queued' then 'superseded'
          when named.kind = 'stalled' and pgflow.recovery_boundary(
            task.started_at, named.timeout, task.lease_extended_until
          ) > clock_timestamp() then 'superseded'
          when named.kind = 'success' then
            case
              when named.step_type = 'single'
                and coalesce(jsonb_typeof(named.output), 'null') <> 'array'
                and exists (
                  select
                  from pgflow.deps as dep
                  cross join lateral (
                    select found.step_type
                    from pgflow.steps as found
                    where found.flow_slug = dep.flow_slug
                      and found.step_slug = dep.step_slug
                    limit 1
                  ) as target
                  where dep.flow_slug = named.flow_slug
                    and dep.dep_slug = named.step_slug
                    and target.step_type = 'map'
                ) then 'violates'
              else 'completed'
            end
          when named.kind = 'failure' and task.attempts_count < named.max_attempts then 'retrying'
          else 'exhausted'
        end,
        named.output,
        named.error_message,
        case
          when named.kind = 'failure' then
            clock_timestamp()
            + make_interval(secs => pgflow.calculate_retry_delay(named.base_delay, task.attempts_count))
        end,
        named.kind = 'stalled'
      )::pgflow.task_verdict
    from (
      select
        result.*,
        run.flow_slug,
        run.status as run_status,
        state.status as state_status,
        step.step_index,
        step.step_type,
        step.timeout,
        step.max_attempts,
        step.base_delay,
        row_number() over (
          partition by result.run_id, step.step_index, result.task_index order by result.position
        ) as turn
      from unnest(results) with ordinality as result (
        run_id, step_slug, task_index, attempt, kind, output, error_message, position
      )
      left join lateral (
        select found.flow_slug, found.status
        from pgflow.runs as found
        where found.run_id = result.run_id
        limit 1
      ) as run on true
      left join lateral (
        select found.*
        from pgflow.step_options as found
        where found.flow_slug = run.flow_slug
          and found.step_slug = result.step_slug
        limit 1
      ) as step on true
      left join lateral (
        select found.status
        from pgflow.step_states as found
        where found.run_id = result.run_id
          and found.step_slug = result.step_slug
        limit 1
      ) as state on true
      order by result.run_id, step.step_index, result.task_index, result.position
      limit cardinality(results)
    ) as named
    left join lateral (
      select found.*
      from pgflow.step_tasks as found
      where found.run_id = named.run_id
        and found.step_slug = named.step_slug
        and found.task_index = named.task_index
      limit 1
      for no key update
    ) as task on true
  );
end
$function$;

comment on function pgflow.judge_results(pgflow.task_result[]) is
'Internal: locks the tasks that results name and tells what each result means for its task: whether the attempt is still the current one, whether the task may be retried, whether the output has the type that a dependent map needs. Changes nothing; the caller holds the locks of the runs.';
