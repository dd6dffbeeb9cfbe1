create view pgflow.stuck_work as
select
  'no live worker' as kind,
  gap.flow_slug,
  gap.step_slug,
  gap.queue_name,
  null::uuid as run_id,
  null::int as task_index,
  null::bigint as msg_id,
  gap.oldest_message_age as age,
  gap.reason
from pgflow.unserved_queues as gap
union all
select
  'waiting too long' as kind,
  queue.flow_slug,
  queue.step_slug,
  queue.queue_name,
  null::uuid as run_id,
  null::int as task_index,
  null::bigint as msg_id,
  clock_timestamp() - depth.visible_since as age,
  format(
    '%s messages could be claimed, one of them for more than an hour; live workers that serve this queue: %s',
    depth.messages_visible,
    pool.live_workers
  ) as reason
from pgflow.queue_depths() as depth
inner join pgflow.queues as queue on queue.queue_name = depth.queue_name
cross join lateral (
  select count(*) as live_workers
  from pgflow.queue_workers as worker
  where worker.queue_name = depth.queue_name
    and worker.is_serving
) as pool
where depth.visible_since < clock_timestamp() - interval '1 hour'
  and pool.live_workers > 0
union all
select
  fault.kind,
  fault.flow_slug,
  fault.step_slug,
  fault.queue_name,
  fault.run_id,
  fault.task_index,
  fault.msg_id,
  clock_timestamp() - fault.since as age,
  fault.detail as reason
from pgflow.message_faults() as fault
union all
select
  'stalled' as kind,
  task.flow_slug,
  task.step_slug,
  task.queue_name,
  task.run_id,
  task.task_index,
  null::bigint as msg_id,
  clock_timestamp() - task.recovery_boundary as age,
  format(
    'attempt %s of %s is past its recovery boundary; pgflow.requeue_stalled_tasks() %s',
    task.attempts_count,
    task.max_attempts,
    case when task.may_start_again then 'queues it again' else 'fails it' end
  ) as reason
from pgflow.stalled_tasks as task
union all
select
  'permanently stalled' as kind,
  task.flow_slug,
  task.step_slug,
  task.queue_name,
  task.run_id,
  task.task_index,
  task.message_id,
  clock_timestamp() - task.permanently_stalled_at as age,
  format('its last allowed attempt, number %s, was lost with its worker', task.attempts_count) as reason
from pgflow.step_tasks as task
where task.permanently_stalled_at is not null;

comment on view pgflow.stuck_work is
'What an operator must look at: queues with waiting work and no live worker, queues where work could be claimed for an hour although a worker is there, active tasks without a message, messages without an active task or hidden far longer than their step asks for, tasks past their recovery boundary, and tasks whose last attempt was lost with its worker. Reads the queues and all tasks, so it is for people and alerts, not for a tight loop.';
comment on column pgflow.stuck_work.kind is
'no live worker, waiting too long, task without a message, message without a task, message hidden too long, stalled or permanently stalled.';
comment on column pgflow.stuck_work.step_slug is 'Null: any step of a flow-mode flow.';
comment on column pgflow.stuck_work.age is
'How long it has been so: since the oldest message was sent, the first one became visible, the task was started or queued, the message was sent, the recovery boundary passed, or the task was given up.';
