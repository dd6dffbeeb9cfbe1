create function pgflow.get_run_with_states(run_id uuid)
returns jsonb
language sql
stable
security definer
set search_path to pg_catalog, pg_temp
as $function$
  select
    jsonb_build_object(
      'run', to_jsonb(run),
      'steps', coalesce(
        (
          select jsonb_agg(to_jsonb(state) order by step.step_index)
          from pgflow.step_states as state
          inner join pgflow.steps as step
            on step.flow_slug = state.flow_slug
            and step.step_slug = state.step_slug
          where state.run_id = run.run_id
        ),
        '[]'
      )
    )
  from pgflow.runs as run
  where run.run_id = get_run_with_states.run_id;
$function$;

comment on function pgflow.get_run_with_states(uuid) is
'A run and its step states as {"run": row, "steps": [rows in step order]}; null for an unknown run. Needs no right on any table, so that clients can be granted just this. As in pgflow 0.14.';
