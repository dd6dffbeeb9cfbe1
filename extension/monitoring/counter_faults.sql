create function pgflow.counter_faults(only_flow text default null)
returns table (code text, subject text, detail text)
language sql
stable
set search_path to pg_catalog, pg_temp
as $function$
  -- Counters matter while a run goes on; one that failed keeps them as they were then.
  with state as (
    select state.*
    from pgflow.runs as run
    inner join pgflow.step_states as state on state.run_id = run.run_id
    where run.status = 'started'
      and (only_flow is null or run.flow_slug = only_flow)
  ),
  tasks as (
    select
      state.run_id,
      state.step_slug,
      state.remaining_tasks,
      state.initial_tasks,
      count(task.run_id) as every,
      count(task.run_id) filter (where pgflow.task_is_active(task.status)) as active
    from state
    left join pgflow.step_tasks as task
      on task.run_id = state.run_id
      and task.step_slug = state.step_slug
    where state.status = 'started'
    group by state.run_id, state.step_slug, state.remaining_tasks, state.initial_tasks
  ),
  deps as (
    select
      state.run_id,
      state.step_slug,
      state.remaining_deps,
      count(source.run_id) as open
    from state
    left join pgflow.deps as dep
      on dep.flow_slug = state.flow_slug
      and dep.step_slug = state.step_slug
    left join pgflow.step_states as source
      on source.run_id = state.run_id
      and source.step_slug = dep.dep_slug
      and source.status not in ('completed', 'skipped')
    where state.status in ('created', 'started')
    group by state.run_id, state.step_slug, state.remaining_deps
  ),
  steps as (
    select
      run.run_id,
      run.remaining_steps,
      flow.queue_mode,
      (select count(*) from pgflow.steps as step where step.flow_slug = run.flow_slug) as defined,
      count(state.run_id) as every,
      count(state.run_id) filter (where state.status in ('created', 'started')) as open
    from pgflow.runs as run
    inner join pgflow.flows as flow on flow.flow_slug = run.flow_slug
    left join pgflow.step_states as state on state.run_id = run.run_id
    where run.status = 'started'
      and (only_flow is null or run.flow_slug = only_flow)
    group by run.run_id, flow.queue_mode
  )
  select
    'remaining_tasks',
    format('step "%s" of run %s', tasks.step_slug, tasks.run_id),
    format('remaining_tasks is %s, active tasks are %s', coalesce(tasks.remaining_tasks::text, 'null'), tasks.active)
  from tasks
  where tasks.remaining_tasks is distinct from tasks.active
  union all
  select
    'initial_tasks',
    format('step "%s" of run %s', tasks.step_slug, tasks.run_id),
    format('initial_tasks is %s, tasks are %s', coalesce(tasks.initial_tasks::text, 'null'), tasks.every)
  from tasks
  where tasks.initial_tasks is distinct from tasks.every
  union all
  select
    'remaining_deps',
    format('step "%s" of run %s', deps.step_slug, deps.run_id),
    format('remaining_deps is %s, dependencies that have not ended are %s', deps.remaining_deps, deps.open)
  from deps
  where deps.remaining_deps <> deps.open
  union all
  select
    'remaining_steps',
    format('run %s', steps.run_id),
    format('remaining_steps is %s, steps that have not ended are %s', steps.remaining_steps, steps.open)
  from steps
  where steps.remaining_steps <> steps.open
  union all
  select
    'step_states',
    format('run %s', steps.run_id),
    format('its flow has %s steps, the run has %s', steps.defined, steps.every)
  from steps
  -- A flow-mode flow can get another step while runs are under way that know nothing of it.
  where case steps.queue_mode when 'flow' then steps.defined < steps.every else steps.defined <> steps.every end;
$function$;

comment on function pgflow.counter_faults(text) is
'Internal: counters of runs in progress, of one flow or of all, that differ from what they count.';
