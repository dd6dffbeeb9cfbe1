create function pgflow.ready_steps(run_ids uuid[])
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
  from pgflow.runs as run
  cross join lateral (
    -- A subquery of its own, so that it is always the runs that lead to the states.
    select every.*
    from pgflow.step_states as every
    where every.run_id = run.run_id
      and every.status = 'created'
      and every.remaining_deps = 0
    offset 0
  ) as state
  inner join pgflow.steps as step
    on step.flow_slug = state.flow_slug
    and step.step_slug = state.step_slug
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
  ) as condition
  where run.run_id = any(run_ids)
    and run.status = 'started';
end;

comment on function pgflow.ready_steps(uuid[]) is
'Internal: every step of these runs that waits for nothing any more, and what is to become of it: start, complete (an empty map), or what its whenUnmet says when its condition is not met (skip, skip-cascade, fail).';
