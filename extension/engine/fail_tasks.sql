create function pgflow.fail_tasks(results jsonb)
returns table (run_id uuid, step_slug text, task_index int, status text)
language sql
set search_path to pg_catalog, pg_temp
as $function$
  select settled.*
  from pgflow.settle_tasks(pgflow.read_results(results, 'failure')) as settled;
$function$;

comment on function pgflow.fail_tasks(jsonb) is
'Reports many failed attempts in one call: an array of {"run_id", "step_slug", "task_index", "attempt", "error_message"}. While attempts are left the task is queued again, to be read after base delay * 2 ^ attempts seconds; else it is failed and its step''s whenExhausted decides. One row an element, in order; status is retrying, failed, skipped (the attempts are used up and the step was skipped; the task itself is failed), superseded, ended or unknown. attempt and errors as in complete_tasks().';
