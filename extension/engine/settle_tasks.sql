create function pgflow.settle_tasks(results pgflow.task_result[])
returns table (run_id uuid, step_slug text, task_index int, status text)
language plpgsql
set search_path to pg_catalog, pg_temp
-- Plans are made once a session, perhaps on empty tables, and must stay right when these have grown: so rows are looked
-- up by key, one by one, for each thing that ended, here and in all that this calls. A limit that the planner can't
-- estimate lets it expect few rows of an array, and a lateral one keeps it from turning a look-up round. Only bitmap
-- scans are left, since these need a key: a plain index scan may read all of a table that counts as empty.
set plan_cache_mode to force_generic_plan
set enable_seqscan to off
set enable_indexscan to off
set enable_indexonlyscan to off
set enable_hashjoin to off
set enable_mergejoin to off
set enable_material to off
set jit to off
as $function$
declare
  run_ids uuid[];
  verdicts pgflow.task_verdict[];
  endings pgflow.step_ending[];
  leaving pgflow.message_ref[];
  returning_messages pgflow.message_ref[];
  returning_at timestamptz[];
begin
  -- Locks in the order that all of the engine keeps: flows, runs, then tasks. Whoever holds a run's lock is the only
  -- one to change its steps.
  run_ids := array(select distinct result.run_id from unnest(results) as result where result.run_id is not null);

  perform pg_advisory_xact_lock_shared(pgflow.flow_key(flow.flow_slug))
  from (
    select distinct run.flow_slug collate "C" as flow_slug
    from unnest(run_ids) as named (run_id)
    cross join lateral (
      select found.flow_slug from pgflow.runs as found where found.run_id = named.run_id limit 1
    ) as run
    order by flow_slug
  ) as flow;

  perform from pgflow.runs as run where run.run_id = any(run_ids) order by run.run_id for no key update;

  perform
  from (
    select result.run_id, result.step_slug, result.task_index
    from unnest(results) as result
    cross join lateral (
      select found.flow_slug from pgflow.runs as found where found.run_id = result.run_id limit 1
    ) as run
    cross join lateral (
      select found.step_index
      from pgflow.steps as found
      where found.flow_slug = run.flow_slug
        and found.step_slug = result.step_slug
      limit 1
    ) as step
    order by result.run_id, step.step_index, result.task_index
    limit cardinality(results)
  ) as named
  cross join lateral (
    select task.status
    from pgflow.step_tasks as task
    where task.run_id = named.run_id
      and task.step_slug = named.step_slug
      and task.task_index = named.task_index
    limit 1
    for no key update
  ) as locked;

  -- A statement of its own, so that it sees what was committed while the locks were waited for.
  verdicts := array(select judged from pgflow.judge_results(results) as judged);

  update pgflow.step_tasks as task
  set
    status = case verdict.verdict
      when 'completed' then 'completed'
      when 'retrying' then 'queued'
      else 'failed'
    end,
    output = case when verdict.verdict in ('completed', 'violates') then verdict.output end,
    error_message = case
      when verdict.verdict = 'completed' then task.error_message
      when verdict.verdict = 'violates' then format(
        '[TYPE_VIOLATION] Produced %s instead of array', coalesce(jsonb_typeof(verdict.output), 'null')
      )
      else verdict.error_message
    end,
    started_at = case when verdict.verdict <> 'retrying' then task.started_at end,
    completed_at = case when verdict.verdict = 'completed' then clock_timestamp() end,
    failed_at = case when verdict.verdict in ('violates', 'exhausted') then clock_timestamp() end,
    permanently_stalled_at = case when verdict.stalled then clock_timestamp() end
  from (select every.* from unnest(verdicts) as every limit cardinality(verdicts)) as verdict
  where task.run_id = verdict.run_id
    and task.step_slug = verdict.step_slug
    and task.task_index = verdict.task_index
    and verdict.verdict in ('completed', 'violates', 'retrying', 'exhausted');

  -- A task that ended before has no business on a queue: its message goes too, should it still be there.
  leaving := array(
    select row(verdict.queue_name, verdict.message_id)::pgflow.message_ref
    from unnest(verdicts) as verdict
    where verdict.verdict in ('completed', 'violates', 'exhausted', 'ended')
  );

  with judged as materialized (
    select
      verdict.run_id,
      verdict.step_slug,
      count(*) filter (where verdict.verdict = 'completed')::int as completed,
      bool_or(verdict.verdict = 'violates') as violates,
      bool_or(verdict.verdict = 'exhausted') as exhausted,
      (array_agg(verdict.output order by verdict.position) filter (where verdict.verdict = 'violates'))[1] as wrong_output,
      (array_agg(verdict.error_message order by verdict.position) filter (where verdict.verdict = 'exhausted'))[1] as error_message,
      min(verdict.position) filter (where verdict.verdict in ('violates', 'exhausted')) as failed_position
    from unnest(verdicts) as verdict
    where verdict.verdict in ('completed', 'violates', 'exhausted')
    group by verdict.run_id, verdict.step_slug
  ),
  tallied as (
    select
      judged.*,
      case
        when judged.violates then 'fail'
        when judged.exhausted then step.when_exhausted
        when state.remaining_tasks = judged.completed then 'complete'
      end as ending,
      fed_map.step_slug as fed_map
    from judged
    cross join lateral (
      select found.flow_slug, found.step_slug, found.remaining_tasks
      from pgflow.step_states as found
      where found.run_id = judged.run_id
        and found.step_slug = judged.step_slug
      limit 1
    ) as state
    inner join pgflow.steps as step
      on step.flow_slug = state.flow_slug
      and step.step_slug = state.step_slug
    left join lateral (
      select target.step_slug
      from pgflow.deps as dep
      inner join pgflow.steps as target
        on target.flow_slug = dep.flow_slug
        and target.step_slug = dep.step_slug
        and target.step_type = 'map'
      where judged.violates
        and dep.flow_slug = step.flow_slug
        and dep.dep_slug = step.step_slug
      order by target.step_index
      limit 1
    ) as fed_map on true
  )
  select
    array_agg(
      row(
        tallied.run_id,
        tallied.step_slug,
        tallied.ending,
        case when tallied.ending in ('skip', 'skip-cascade') then 'handler_failed' end,
        case
          when tallied.violates then format(
            '[TYPE_VIOLATION] Map step %s expects array input but dependency %s produced %s',
            tallied.fed_map,
            tallied.step_slug,
            coalesce(jsonb_typeof(tallied.wrong_output), 'null')
          )
          when tallied.exhausted then tallied.error_message
        end
      )::pgflow.step_ending
      order by tallied.failed_position
    )
  into endings
  from tallied
  where tallied.ending is not null;

  -- Steps that complete get their count with the rest of their row.
  update pgflow.step_states as state
  set remaining_tasks = state.remaining_tasks - completed.tasks
  from (
    select verdict.run_id, verdict.step_slug, count(*)::int as tasks
    from unnest(verdicts) as verdict
    where verdict.verdict = 'completed'
    group by verdict.run_id, verdict.step_slug
    limit cardinality(verdicts)
  ) as completed
  where state.run_id = completed.run_id
    and state.step_slug = completed.step_slug
    and (completed.run_id, completed.step_slug) not in (
      select ending.run_id, ending.step_slug from unnest(endings) as ending where ending.ending = 'complete'
    );

  if endings is not null then
    leaving := leaving || pgflow.end_steps(endings);
    leaving := leaving || pgflow.advance_runs(
      array(select distinct ending.run_id from unnest(endings) as ending order by 1)
    );
  end if;

  -- Messages come last in the order of locks. A task that goes back for a retry while its step or run ends in the same
  -- batch has left with the others.
  perform pgflow.archive_messages(leaving);

  select
    array_agg(row(verdict.queue_name, verdict.message_id)::pgflow.message_ref),
    array_agg(verdict.visible_at)
  into returning_messages, returning_at
  from unnest(verdicts) as verdict
  where verdict.verdict = 'retrying';

  if returning_messages is not null then
    perform pgflow.set_visibility(returning_messages, returning_at);
  end if;

  return query
  select
    verdict.run_id,
    verdict.step_slug,
    verdict.task_index,
    case
      when verdict.verdict = 'exhausted' and state.status = 'skipped' then 'skipped'
      when verdict.verdict in ('violates', 'exhausted') then 'failed'
      -- What the element would get if it came in a call of its own, right after this one.
      when verdict.verdict = 'repeated' and pgflow.task_is_active(task.status) then 'superseded'
      when verdict.verdict = 'repeated' then 'ended'
      -- Another result of the batch ended its step or run: nothing is left to retry.
      when verdict.verdict = 'retrying' and not pgflow.task_is_active(task.status) then 'ended'
      else verdict.verdict
    end
  from unnest(verdicts) as verdict
  left join lateral (
    select found.status
    from pgflow.step_tasks as found
    where found.run_id = verdict.run_id
      and found.step_slug = verdict.step_slug
      and found.task_index = verdict.task_index
    limit 1
  ) as task on true
  left join lateral (
    select found.status
    from pgflow.step_states as found
    where found.run_id = verdict.run_id
      and found.step_slug = verdict.step_slug
    limit 1
  ) as state on true
  order by verdict.position;
end
$function$;

comment on function pgflow.settle_tasks(pgflow.task_result[]) is
'Internal: the one way in which results end tasks. Locks, judges the whole batch, writes the tasks, ends the steps whose last task ended, advances the runs, and only then touches messages. One row a result, in order.';
