create function pgflow.message_faults(only_flow text default null)
returns table (
  kind text,
  flow_slug text,
  step_slug text,
  queue_name text,
  run_id uuid,
  task_index int,
  msg_id bigint,
  since timestamptz,
  detail text
)
language sql
stable
set search_path to pg_catalog, pg_temp
as $function$
  with message as materialized (
    select message.queue_name, message.msg_id, message.enqueued_at, message.visible_at
    from pgflow.queue_messages(only_flow) as message
  ),
  active as (
    select task.*
    from pgflow.step_tasks as task
    where pgflow.task_is_active(task.status)
      and (only_flow is null or task.flow_slug = only_flow)
  )
  select
    case
      when message.msg_id is null then 'task without a message'
      when active.run_id is null then 'message without a task'
      else 'message hidden too long'
    end as kind,
    coalesce(active.flow_slug, queue.flow_slug) as flow_slug,
    coalesce(active.step_slug, queue.step_slug) as step_slug,
    coalesce(active.queue_name, queue.queue_name) as queue_name,
    active.run_id,
    active.task_index,
    coalesce(active.message_id, message.msg_id) as msg_id,
    coalesce(active.started_at, active.queued_at, message.enqueued_at) as since,
    case
      when message.msg_id is null then 'its message is not on the queue, so no worker can find the task'
      when active.run_id is null then 'no active task belongs to it; a worker that reads it stops with PF011'
      else format(
        'no worker can read it before %s, an hour and more after any delay of its step; '
        'select pgmq.set_vt(''%s'', %s, 0) shows it now',
        message.visible_at,
        message.queue_name,
        message.msg_id
      )
    end as detail
  from active
  full outer join message
    on message.queue_name = active.queue_name
    and message.msg_id = active.message_id
  left join pgflow.queues as queue on queue.queue_name = message.queue_name
  left join pgflow.step_options as step
    on step.flow_slug = active.flow_slug
    and step.step_slug = active.step_slug
  where active.run_id is null
    -- Recompilation replaces a queue with its tasks, but the new one shows at once and the tasks by snapshot.
    or (message.msg_id is null and pgflow.queue_is_unreplaced(active.queue_name))
    -- An hour for readers that hide what they have not claimed yet.
    or (
      active.status = 'queued'
      and message.visible_at > clock_timestamp() + interval '1 hour' + make_interval(
        secs => greatest(step.start_delay, pgflow.calculate_retry_delay(step.base_delay, active.attempts_count))
      )
    );
$function$;

comment on function pgflow.message_faults(text) is
'Where tasks and messages of one flow, or of all, don''t match: active tasks without a message on their queue, messages on owned queues without an active task, and messages of queued tasks that are hidden for an hour more than any delay of their step. Reads every active task and every message of the owned queues.';
