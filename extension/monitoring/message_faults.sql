create function pgflow.message_faults(only_flow text default null)
returns table (
  kind text,
  flow_slug text,
  step_slug text,
  queue_name text,
  run_id uuid,
  task_index int,
  msg_id bigint,
  since timestamptz
)
language sql
stable
set search_path to pg_catalog, pg_temp
as $function$
  with message as materialized (
    select message.queue_name, message.msg_id, message.enqueued_at
    from pgflow.queue_messages(only_flow) as message
  ),
  active as (
    select task.*
    from pgflow.step_tasks as task
    where pgflow.task_is_active(task.status)
      and (only_flow is null or task.flow_slug = only_flow)
  )
  select
    case when message.msg_id is null then 'task without a message' else 'message without a task' end as kind,
    coalesce(active.flow_slug, queue.flow_slug) as flow_slug,
    coalesce(active.step_slug, queue.step_slug) as step_slug,
    coalesce(active.queue_name, queue.queue_name) as queue_name,
    active.run_id,
    active.task_index,
    coalesce(active.message_id, message.msg_id) as msg_id,
    coalesce(active.started_at, active.queued_at, message.enqueued_at) as since
  from active
  full outer join message
    on message.queue_name = active.queue_name
    and message.msg_id = active.message_id
  left join pgflow.queues as queue on queue.queue_name = message.queue_name
  where active.run_id is null
    -- Recompilation replaces a queue with its tasks, but the new one shows at once and the tasks by snapshot.
    or (message.msg_id is null and pgflow.queue_is_unreplaced(active.queue_name));
$function$;

comment on function pgflow.message_faults(text) is
'Where tasks and messages of one flow, or of all, don''t match: active tasks without a message on their queue, and messages on owned queues without an active task. Reads every active task and every message of the owned queues.';
