create function pgflow.release_dependents(run_ids uuid[], step_slugs text[])
returns void
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
begin
  update pgflow.step_states as dependent
  set
    remaining_deps = dependent.remaining_deps - released.deps,
    initial_tasks = coalesce(released.tasks, dependent.initial_tasks)
  from (
    select
      ended.run_id,
      dep.step_slug,
      count(*)::int as deps,
      -- A map has one dependency at most, so there is at most one value to take.
      max(
        case
          when target.step_type = 'single' then null
          when ended_state.status = 'skipped' then 0
          when source.step_type = 'map' then ended_state.initial_tasks
          else jsonb_array_length(ended_state.output)
        end
      ) as tasks
    from unnest(run_ids, step_slugs) as ended (run_id, step_slug)
    cross join lateral (
      select found.*
      from pgflow.step_states as found
      where found.run_id = ended.run_id
        and found.step_slug = ended.step_slug
      limit 1
    ) as ended_state
    cross join lateral (
      select found.step_type
      from pgflow.steps as found
      where found.flow_slug = ended_state.flow_slug
        and found.step_slug = ended_state.step_slug
      limit 1
    ) as source
    inner join pgflow.deps as dep
      on dep.flow_slug = ended_state.flow_slug
      and dep.dep_slug = ended_state.step_slug
    cross join lateral (
      select found.step_type
      from pgflow.steps as found
      where found.flow_slug = dep.flow_slug
        and found.step_slug = dep.step_slug
      limit 1
    ) as target
    group by ended.run_id, dep.step_slug
    limit 1000000000 * cardinality(run_ids)::bigint
  ) as released
  where dependent.run_id = released.run_id
    and dependent.step_slug = released.step_slug
    and dependent.status = 'created';

  -- A skip or a completion lowers the count of its run once for every step that ended.
  update pgflow.runs as run
  set remaining_steps = run.remaining_steps - ended.steps
  from (
    select ended.run_id, count(*)::int as steps
    from unnest(run_ids) as ended (run_id)
    group by ended.run_id
    limit cardinality(run_ids)
  ) as ended
  where run.run_id = ended.run_id;
end
$function$;

comment on function pgflow.release_dependents(uuid[], text[]) is
'Internal: for steps that were completed or skipped, takes one dependency from each dependent that still waits, tells dependent maps how many tasks they have, and lowers the remaining steps of the runs.';
