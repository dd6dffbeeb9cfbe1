create function pgflow.ready_steps(run_ids uuid[], step_slugs text[])
returns table (run_id uuid, step_slug text, step_index int, decision text)
language sql
stable
begin atomic
  select
    state.run_id,
    state.step_slug,
    step.step_index,
    case
      when not (
        coalesce(condition.input @> step.required_input_pattern, true)
        and not coalesce(condition.input @> step.forbidden_input_pattern, false)
      ) then step.when_unmet
      when state.initial_tasks = 0 then 'complete'
      else 'start'
    end as decision
  from unnest(run_ids, step_slugs) as named (run_id, step_slug)
  cross join lateral (
    select
      every.flow_slug,
      every.input
    from pgflow.runs as every
    where every.run_id = named.run_id
      and every.status = 'started'
    limit 1
  ) as run
  cross join lateral (
    select
      every.run_id,
      every.flow_slug,
      every.step_slug,
      every.initial_tasks
    from pgflow.step_states as every
    where every.run_id = named.run_id
      and every.step_slug = named.step_slug
      and every.status = 'created'
    limit 1
  ) as state
  cross join lateral (
    select every.*
    from pgflow.steps as every
    where every.flow_slug = state.flow_slug
      and every.step_slug = state.step_slug
    limit 1
  ) as step
  cross join lateral (
    -- Gathered only where a pattern asks for it: most steps have none, and outputs can be large.
    select
      case
        when step.required_input_pattern is null and step.forbidden_input_pattern is null then null
        when step.deps_count = 0 then run.input
        else coalesce(
          (
            select gathered.outputs
            from pgflow.dependency_outputs as gathered
            where gathered.run_id = state.run_id
              and gathered.flow_slug = state.flow_slug
              and gathered.step_slug = state.step_slug
          ),
          '{}'
        )
      end as input
  ) as condition;
end;

comment on function pgflow.ready_steps(uuid[], text[]) is
'Internal: of steps that wait for nothing any more, those that have neither started nor ended and whose run goes on, each with what is to become of it: start, complete (an empty map), or what its whenUnmet says when its condition is not met (skip, skip-cascade, fail).';
