create function pgflow.skip_steps(endings pgflow.step_ending[])
returns pgflow.consequences
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
declare
  run_ids uuid[];
  step_slugs text[];
  leaving pgflow.message_ref[];
begin
  with recursive reached as (
    select
      run.flow_slug,
      ending.run_id,
      ending.step_slug,
      ending.ending = 'skip-cascade' as cascades,
      ending.reason,
      ending.message
    from unnest(endings) as ending
    cross join lateral (
      select found.flow_slug from pgflow.runs as found where found.run_id = ending.run_id limit 1
    ) as run
    union
    select
      reached.flow_slug,
      reached.run_id,
      dep.step_slug,
      true,
      'dependency_skipped',
      null
    from reached
    inner join pgflow.deps as dep
      on dep.flow_slug = reached.flow_slug
      and dep.dep_slug = reached.step_slug
    where reached.cascades
  ),
  -- A step that is skipped for a reason of its own keeps that reason though a cascade reaches it too.
  chosen as (
    select distinct on (reached.run_id, reached.step_slug) reached.*
    from reached
    order by reached.run_id, reached.step_slug, (reached.reason = 'dependency_skipped')
  ),
  skipped as (
    update pgflow.step_states as state
    set
      status = 'skipped',
      skip_reason = chosen.reason,
      error_message = chosen.message,
      skipped_at = clock_timestamp(),
      remaining_tasks = null
    from chosen
    where state.run_id = chosen.run_id
      and state.step_slug = chosen.step_slug
      and state.status in ('created', 'started')
    returning state.run_id, state.step_slug
  )
  select array_agg(skipped.run_id), array_agg(skipped.step_slug)
  into run_ids, step_slugs
  from skipped;

  with ended as (
    update pgflow.step_tasks as task
    set
      status = 'skipped',
      skipped_at = clock_timestamp()
    from (
      select every.run_id, every.step_slug
      from unnest(run_ids, step_slugs) as every (run_id, step_slug)
      limit cardinality(run_ids)
    ) as skipped
    where task.run_id = skipped.run_id
      and task.step_slug = skipped.step_slug
      and pgflow.task_is_active(task.status)
    returning task.queue_name, task.message_id
  )
  select coalesce(array_agg(row(ended.queue_name, ended.message_id)::pgflow.message_ref), '{}')
  into leaving
  from ended;

  perform pgflow.emit_step_events(run_ids, step_slugs);

  return pgflow.release_dependents(run_ids, step_slugs, leaving);
end
$function$;

comment on function pgflow.skip_steps(pgflow.step_ending[]) is
'Internal: skips steps, and for skip-cascade everything downstream of them. Tasks that were still active become skipped. Returns what follows, with the messages of these tasks.';
