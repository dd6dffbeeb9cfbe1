create function pgflow.advance_runs(run_ids uuid[], step_slugs text[])
returns pgflow.message_ref[]
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
declare
  ready_runs uuid[] := run_ids;
  ready_slugs text[] := step_slugs;
  all_start boolean;
  endings pgflow.step_ending[];
  followers pgflow.consequences;
  leaving pgflow.message_ref[] := '{}';
begin
  -- One round a layer of steps that end without a task; each round ends at least one step, so it comes to an end. The
  -- others start when no ending can change that any more.
  loop
    select array_agg(ready.run_id), array_agg(ready.step_slug), bool_and(ready.decision = 'start')
    into ready_runs, ready_slugs, all_start
    from pgflow.ready_steps(ready_runs, ready_slugs) as ready;

    exit when all_start is not false;

    with ready as materialized (
      select * from pgflow.ready_steps(ready_runs, ready_slugs)
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

    followers := pgflow.end_steps(endings);
    leaving := leaving || followers.leaving;
    ready_runs := ready_runs || followers.run_ids;
    ready_slugs := ready_slugs || followers.step_slugs;
  end loop;

  if ready_runs is not null then
    perform pgflow.start_steps(ready_runs, ready_slugs);
  end if;

  return leaving;
end
$function$;

comment on function pgflow.advance_runs(uuid[], text[]) is
'Internal: brings runs as far as they can go without a worker. Takes steps that wait for nothing any more, ends those that need no task (unmet conditions, empty maps) until none is left, then starts the others. The caller holds the locks of the runs. Returns the messages that must leave their queues.';
