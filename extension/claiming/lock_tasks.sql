create function pgflow.lock_tasks(queue_name text, msg_ids bigint[])
returns bigint[]
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
begin
  -- Skipping what is locked can still wait: when one update of a row commits at the moment of the look, the next one is
  -- waited for. So the order is the one in which results lock tasks, and no two sessions ever wait for each other.
  return array(
    select task.message_id
    from pgflow.step_tasks as task
    inner join pgflow.steps as step
      on step.flow_slug = task.flow_slug
      and step.step_slug = task.step_slug
    where task.queue_name = lock_tasks.queue_name
      and task.message_id = any(lock_tasks.msg_ids)
    order by task.run_id, step.step_index, task.task_index
    for no key update of task skip locked
  );
end
$function$;

comment on function pgflow.lock_tasks(text, bigint[]) is
'Internal: locks the tasks that these messages name and gives the ids of those it got. A task that another session holds is being claimed, finished or ended there: passed over.';
