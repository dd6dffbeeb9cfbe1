create function pgflow.advance_runs(run_ids uuid[])
returns pgflow.message_ref[]
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
declare
  endings pgflow.step_ending[];
  leaving pgflow.message_ref[] := '{}';
begin
  -- One round a layer of steps that end without a task; each round ends at least one step, so it comes to an end.
  loop
    with ready as materialized (
      select * from pgflow.ready_steps(run_ids)
    ),
    -- A condition that fails the run makes the other decisions of this round pointless.
    failing as (
      select distinct on (ready.run_id) ready.run_id, ready.step_slug
      from ready
      where ready.decision = 'fail'
      order by ready.run_id, ready.step_index
    )
    select
      array_agg(
        row(
          ready.run_id,
          ready.step_slug,
          ready.decision,
          case when ready.decision in ('skip', 'skip-cascade') then 'condition_unmet' end,
          case when ready.decision = 'fail' then 'Condition not met' end
        )::pgflow.step_ending
      )
    into endings
    from ready
    left join failing on failing.run_id = ready.run_id
    where ready.decision <> 'start'
      and (failing.run_id is null or failing.step_slug = ready.step_slug);

    exit when endings is null;
    leaving := leaving || pgflow.end_steps(endings);
  end loop;

  perform pgflow.start_steps(run_ids);
  perform pgflow.complete_runs(run_ids);

  return leaving;
end
$function$;

comment on function pgflow.advance_runs(uuid[]) is
'Internal: brings runs as far as they can go without a worker. Looks at all ready steps, ends those that need no task (unmet conditions, empty maps) until none is left, then starts the others and completes runs without remaining steps. The caller holds the locks of the runs. Returns the messages that must leave their queues.';
