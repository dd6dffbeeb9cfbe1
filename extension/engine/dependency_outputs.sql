create function pgflow.dependency_outputs(run_id uuid, flow_slug text, step_slug text)
returns jsonb
language sql
stable
begin atomic
  select coalesce(jsonb_object_agg(dep.dep_slug, state.output), '{}')
  from pgflow.deps as dep
  inner join pgflow.step_states as state
    on state.run_id = dependency_outputs.run_id
    and state.step_slug = dep.dep_slug
    and state.status = 'completed'
  where dep.flow_slug = dependency_outputs.flow_slug
    and dep.step_slug = dependency_outputs.step_slug;
end;

comment on function pgflow.dependency_outputs(uuid, text, text) is
'Internal: what the dependencies of a step gave, as an object by slug. A skipped dependency is absent.';
