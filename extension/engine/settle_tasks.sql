create function pgflow.settle_tasks(results pgflow.task_result[])
returns table (run_id uuid, step_slug text, task_index int, status text)
language plpgsql
set search_path to pg_catalog, pg_temp
-- Plans are made once a session, perhaps on empty tables, and must stay right when these have grown: so rows are looked
-- up by key, one by one, for each thing that ended, here and in all that this calls. A limit that the planner can't
-- estimate lets it expect few rows of an array, and a lateral one keeps it from turning a look-up round. No statement
-- asks for a table in the order of an index: then a plain index scan would read all of one that counts as empty.
set plan_cache_mode to force_generic_plan
set enable_indexscan to on
set enable_nestloop to on
set enable_seqscan to off
set enable_bitmapscan to off
set enable_hashjoin to off
set enable_mergejoin to off
set enable_material to off
set jit to off
as $function$
declare
  run_ids uuid[];
  verdicts pgflow.task_verdict[];
  step_runs uuid[];
  step_slugs text[];
  completed int[];
  has_failures boolean;
  has_others boolean;
  followers pgflow.consequences;
  ready_runs uuid[];
  ready_steps text[];
  leaving pgflow.message_ref[];
  returning_messages pgflow.message_ref[];
  returning_at timestamptz[];
begin
  -- Locks in the order that all of the engine keeps: flows, runs, then tasks. Whoever holds a run's lock is the only
  -- one to change its steps.
  run_ids := array(
    select distinct result.run_id from unnest(results) as result where result.run_id is not null order by result.run_id
  );

  perform pg_advisory_xact_lock_shared(pgflow.flow_key(flow.flow_slug))
  from (
    select distinct run.flow_slug collate "C" as flow_slug
    from unnest(run_ids) as named (run_id)
    cross join lateral (
      select found.flow_slug from pgflow.runs as found where found.run_id = named.run_id limit 1
    ) as run
    order by flow_slug
  ) as flow;

  perform
  from unnest(run_ids) with ordinality as named (run_id, position)
  cross join lateral (
    select run.status from pgflow.runs as run where run.run_id = named.run_id limit 1 for no key update
  ) as locked;

  -- A statement of its own, so that it sees what was committed while the locks were waited for.
  verdicts := pgflow.judge_results(results);

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

  select
    array_agg(counted.run_id order by counted.run_id, counted.step_index),
    array_agg(counted.step_slug order by counted.run_id, counted.step_index),
    array_agg(counted.completed order by counted.run_id, counted.step_index),
    coalesce(bool_or(counted.has_failures), false),
    coalesce(sum(counted.completed), 0) < cardinality(verdicts)
  into step_runs, step_slugs, completed, has_failures, has_others
  from (
    select
      verdict.run_id,
      verdict.step_slug,
      verdict.step_index,
      count(*) filter (where verdict.verdict = 'completed')::int as completed,
      bool_or(verdict.verdict <> 'completed') as has_failures
    from unnest(verdicts) as verdict
    where verdict.verdict in ('completed', 'violates', 'exhausted')
    group by verdict.run_id, verdict.step_slug, verdict.step_index
  ) as counted;

  if step_runs is not null then
    -- A step with a failure has a task more than it has results here, so it is counted but never completed by this.
    followers := pgflow.complete_steps(step_runs, step_slugs, completed);
    ready_runs := followers.run_ids;
    ready_steps := followers.step_slugs;
  end if;

  if has_failures then
    followers := pgflow.end_steps(pgflow.failure_endings(verdicts));
    leaving := leaving || followers.leaving;
    ready_runs := ready_runs || followers.run_ids;
    ready_steps := ready_steps || followers.step_slugs;
  end if;

  if ready_runs is not null then
    leaving := leaving || pgflow.advance_runs(ready_runs, ready_steps);
  end if;

  -- Messages come last in the order of locks. A task that goes back for a retry while its step or run ends in the same
  -- batch has left with the others.
  perform pgflow.archive_messages(leaving);

  -- Most batches are nothing but completions.
  if not has_others then
    return query
    select verdict.run_id, verdict.step_slug, verdict.task_index, verdict.verdict
    from unnest(verdicts) as verdict
    order by verdict.position;
    return;
  end if;

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
