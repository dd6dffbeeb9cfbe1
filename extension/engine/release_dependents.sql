create function pgflow.release_dependents(
  run_ids uuid[], step_slugs text[], leaving pgflow.message_ref[] default null
)
returns pgflow.consequences
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
declare
  followers pgflow.consequences;
  completed_runs uuid[];
begin
  with released as (
    update pgflow.step_states as dependent
    set
      remaining_deps = dependent.remaining_deps - waiting.deps,
      initial_tasks = coalesce(waiting.tasks, dependent.initial_tasks)
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
    ) as waiting
    where dependent.run_id = waiting.run_id
      and dependent.step_slug = waiting.step_slug
      and dependent.status = 'created'
    returning dependent.run_id, dependent.step_slug, dependent.remaining_deps
  )
  select release_dependents.leaving, array_agg(released.run_id), array_agg(released.step_slug)
  into followers
  from released
  where released.remaining_deps = 0;

  -- A skip or a completion lowers the count of its run once for every step that ended; at 0 nothing is left to do.
  with counted as (
    update pgflow.runs as run
    set
      remaining_steps = run.remaining_steps - ended.steps,
      status = case when run.remaining_steps = ended.steps then 'completed' else run.status end,
      completed_at = case when run.remaining_steps = ended.steps then clock_timestamp() end,
      output = case
        when run.remaining_steps = ended.steps then (
          select coalesce(jsonb_object_agg(state.step_slug, state.output), '{}')
          from pgflow.step_states as state
          where state.run_id = run.run_id
            and state.status = 'completed'
            and not exists (
              select
              from pgflow.deps as dep
              where dep.flow_slug = state.flow_slug
                and dep.dep_slug = state.step_slug
            )
        )
      end
    from (
      select ended.run_id, count(*)::int as steps
      from unnest(run_ids) as ended (run_id)
      group by ended.run_id
      limit cardinality(run_ids)
    ) as ended
    where run.run_id = ended.run_id
    returning run.run_id, run.status
  )
  select array_agg(counted.run_id) into completed_runs from counted where counted.status = 'completed';

  if completed_runs is not null then
    perform pgflow.emit_run_events(completed_runs);
  end if;

  return followers;
end
$function$;

comment on function pgflow.release_dependents(uuid[], text[], pgflow.message_ref[]) is
'Internal: for steps that were completed or skipped, takes one dependency from each dependent that still waits, tells dependent maps how many tasks they have, lowers the remaining steps of the runs, and completes those that have none left; their output holds that of every completed step without dependents, by slug. Returns the dependents that are ready, with the messages passed in.';
