create view pgflow.dependency_outputs as
select
  dep.flow_slug,
  dep.step_slug,
  state.run_id,
  jsonb_object_agg(dep.dep_slug, state.output) as outputs
from pgflow.deps as dep
inner join pgflow.step_states as state
  on state.step_slug = dep.dep_slug
  and state.flow_slug = dep.flow_slug
  and state.status = 'completed'
group by dep.flow_slug, dep.step_slug, state.run_id;

comment on view pgflow.dependency_outputs is
'Internal: what the dependencies of each step of each run gave, as an object by slug. A skipped dependency is absent, and so is the row when none has completed. A view, so that it is planned as part of the query that asks for one step of one run.';
