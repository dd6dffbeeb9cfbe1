create function pgflow.end_steps(endings pgflow.step_ending[])
returns pgflow.message_ref[]
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
declare
  completing pgflow.step_ending[] := array(select step from unnest(endings) as step where step.ending = 'complete');
  skipping pgflow.step_ending[] := array(select step from unnest(endings) as step where step.ending in ('skip', 'skip-cascade'));
  failing pgflow.step_ending[] := array(select step from unnest(endings) as step where step.ending = 'fail');
  leaving pgflow.message_ref[] := '{}';
begin
  if completing <> '{}' then
    perform pgflow.complete_steps(completing);
  end if;

  if skipping <> '{}' then
    leaving := leaving || pgflow.skip_steps(skipping);
  end if;

  if failing <> '{}' then
    leaving := leaving || pgflow.fail_steps(failing);
  end if;

  return leaving;
end
$function$;

comment on function pgflow.end_steps(pgflow.step_ending[]) is
'Internal: ends steps as told, with all that follows for their tasks, dependents and runs. Completions come first and failures last, so that what a batch achieved counts before its run fails. Returns the messages that must leave their queues.';
