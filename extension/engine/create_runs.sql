create function pgflow.create_runs(flow_slug text, inputs jsonb[], run_ids uuid[])
returns void
language plpgsql
set search_path to pg_catalog, pg_temp
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
  step_count int;
  root_maps boolean;
  bad record;
  root_runs uuid[];
  root_steps text[];
begin
  -- Keeps the definition as it is until the runs are there.
  perform pg_advisory_xact_lock_shared(pgflow.flow_key(create_runs.flow_slug));

  if not exists (select from pgflow.flows as flow where flow.flow_slug = create_runs.flow_slug) then
    perform pgflow.refuse_unknown_flow(create_runs.flow_slug);
  end if;

  select count(*), coalesce(bool_or(step.step_type = 'map' and step.deps_count = 0), false)
  into step_count, root_maps
  from pgflow.steps as step
  where step.flow_slug = create_runs.flow_slug;

  select run.position, jsonb_typeof(run.input) as kind
  into bad
  from unnest(inputs) with ordinality as run (input, position)
  where run.input is null
    or (root_maps and jsonb_typeof(run.input) <> 'array')
  order by run.position
  limit 1;

  if found then
    raise exception using
      errcode = 'PF019',
      message = case
        when root_maps and bad.kind is null
          then format('Flow %s has root map steps but input is NULL', create_runs.flow_slug)
        when root_maps
          then format('Flow %s has root map steps but input is not an array (got %s)', create_runs.flow_slug, bad.kind)
        else format('Input of a run of flow "%s" is NULL.', create_runs.flow_slug)
      end,
      detail = format('It is input %s of %s; no run was started.', bad.position, cardinality(inputs)),
      hint = case
        when root_maps then 'A root map step makes one task for each element of the input: pass a JSON array.'
        else 'Pass a JSON value, for example {}.'
      end;
  end if;

  insert into pgflow.runs (run_id, flow_slug, input, remaining_steps, started_at)
  select
    run.run_id,
    create_runs.flow_slug,
    run.input,
    step_count,
    clock_timestamp()
  from unnest(run_ids, inputs) with ordinality as run (run_id, input, position)
  order by run.position;

  insert into pgflow.step_states (flow_slug, run_id, step_slug, remaining_deps, initial_tasks, created_at)
  select
    step.flow_slug,
    run.run_id,
    step.step_slug,
    step.deps_count,
    case
      when step.step_type = 'single' then 1
      when step.deps_count = 0 then jsonb_array_length(run.input)
    end,
    clock_timestamp()
  from unnest(run_ids, inputs) with ordinality as run (run_id, input, position)
  inner join pgflow.steps as step on step.flow_slug = create_runs.flow_slug
  order by run.position, step.step_index;

  perform pgflow.emit_run_events(run_ids);

  if step_count = 0 then
    update pgflow.runs as run
    set
      status = 'completed',
      completed_at = clock_timestamp(),
      output = '{}'
    where run.run_id = any(run_ids);

    perform pgflow.emit_run_events(run_ids);
    return;
  end if;

  select array_agg(run.id), array_agg(step.step_slug)
  into root_runs, root_steps
  from unnest(run_ids) as run (id)
  cross join pgflow.steps as step
  where step.flow_slug = create_runs.flow_slug
    and step.deps_count = 0;

  -- Nothing of a new run has a message yet that could have to leave its queue.
  perform pgflow.advance_runs(root_runs, root_steps);
end
$function$;

comment on function pgflow.create_runs(text, jsonb[], uuid[]) is
'Internal: makes runs of a flow, one for each input, and brings them as far as they can go without a worker. Raises PF018 for an unknown flow and PF019 for an input that is null or, before a root map, not an array; then no run is made.';
