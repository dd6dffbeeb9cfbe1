create function pgflow.refuse_queue_change()
returns trigger
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
begin
  raise exception using
    errcode = 'PF019',
    message = format(
      'The queue of task %s of step "%s" in run %s can''t be changed.', old.task_index, old.step_slug, old.run_id
    ),
    detail = format('Its message was sent to "%s"; the update names "%s".', old.queue_name, new.queue_name),
    hint = 'step_tasks.queue_name records where the message is. A new route needs a new flow slug.';
end
$function$;

comment on function pgflow.refuse_queue_change() is
'Trigger: the queue of a task is a snapshot of where its message was sent, so an update of it would lose the message. Raises PF019.';

create trigger queue_is_a_snapshot
before update of queue_name on pgflow.step_tasks
for each row
when (old.queue_name is distinct from new.queue_name)
execute function pgflow.refuse_queue_change();
