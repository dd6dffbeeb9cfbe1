create function pgflow.end_steps(endings pgflow.step_ending[])
returns pgflow.consequences
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
declare
  completing constant pgflow.step_ending[] := array(select step from unnest(endings) as step where step.ending = 'complete');
  skipping constant pgflow.step_ending[] := array(select step from unnest(endings) as step where step.ending in ('skip', 'skip-cascade'));
  failing constant pgflow.step_ending[] := array(select step from unnest(endings) as step where step.ending = 'fail');
  completed pgflow.consequences;
  skipped pgflow.consequences;
  leaving pgflow.message_ref[];
begin
  if completing <> '{}' then
    completed := pgflow.complete_steps(
      array(select step.run_id from unnest(completing) as step),
      array(select step.step_slug from unnest(completing) as step),
      array_fill(0, array[cardinality(completing)])
    );
  end if;

  if skipping <> '{}' then
    skipped := pgflow.skip_steps(skipping);
  end if;

  if failing <> '{}' then
    leaving := pgflow.fail_steps(failing);
  end if;

  return row(
    skipped.leaving || leaving,
    completed.run_ids || skipped.run_ids,
    completed.step_slugs || skipped.step_slugs
  )::pgflow.consequences;
end
$function$;

comment on function pgflow.end_steps(pgflow.step_ending[]) is
'Internal: ends steps that need no task or no longer any, with all that follows for their tasks, dependents and runs. Completions come first and failures last, so that what a batch achieved counts before its run fails. Returns what follows.';
