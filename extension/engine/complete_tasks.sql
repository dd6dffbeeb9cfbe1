create function pgflow.complete_tasks(results jsonb)
returns table (run_id uuid, step_slug text, task_index int, status text)
language sql
set search_path to pg_catalog, pg_temp
as $function$
  select settled.*
  from pgflow.settle_tasks(pgflow.read_results(results, 'success')) as settled;
$function$;

comment on function pgflow.complete_tasks(jsonb) is
'Completes many tasks in one call: an array of {"run_id", "step_slug", "task_index", "attempt", "output"}. attempt, when given, is a fencing token: a result of another attempt than the current one changes nothing. One row an element, in order; status is completed, failed (the output is not the array that a dependent map needs), superseded (the attempt is no longer the current one), ended (the task, its step or its run ended before) or unknown. Of a repeated task the first result counts. Raises PF019 for an element that can''t be read; then no task was changed.';
