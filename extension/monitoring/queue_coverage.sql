create view pgflow.queue_coverage as
select
  step.flow_slug,
  step.step_slug,
  step.step_index,
  step.queue_name,
  flow.queue_mode,
  coalesce(pool.live_workers, 0) as live_workers,
  pool.last_heartbeat_at,
  depth.messages_total,
  depth.messages_visible,
  depth.messages_in_flight,
  depth.messages_delayed,
  clock_timestamp() - depth.oldest_enqueued_at as oldest_message_age,
  coalesce(pool.live_workers, 0) > 0 as is_covered
from pgflow.flows as flow
inner join pgflow.steps as step on step.flow_slug = flow.flow_slug
-- By flow, so that a query about one flow reads the queues of that flow only. Distinct, so that they are read once and
-- not for every step: the planner takes another look at a function for free.
left join (
  select distinct
    each_flow.flow_slug,
    queue.*
  from pgflow.flows as each_flow
  cross join lateral pgflow.queue_depths(each_flow.flow_slug) as queue
) as depth
  on depth.flow_slug = step.flow_slug
  and depth.queue_name = step.queue_name
left join (
  select
    worker.queue_name,
    worker.flow_slug,
    count(*) filter (where worker.is_serving) as live_workers,
    max(worker.last_heartbeat_at) as last_heartbeat_at
  from pgflow.queue_workers as worker
  group by worker.queue_name, worker.flow_slug
) as pool
  on pool.queue_name = step.queue_name
  and pool.flow_slug = step.flow_slug;

comment on view pgflow.queue_coverage is
'One row a step: who serves its queue, and what waits there. In flow mode the steps of a flow share one queue, and each of their rows shows the figures of that queue.';
comment on column pgflow.queue_coverage.live_workers is
'Workers of exactly this subscription that are live and may claim.';
comment on column pgflow.queue_coverage.last_heartbeat_at is
'When any worker of the queue, live or not, was last heard of; null: never.';
comment on column pgflow.queue_coverage.messages_total is 'Null: the queue''s table is gone.';
comment on column pgflow.queue_coverage.messages_visible is 'Could be claimed now.';
comment on column pgflow.queue_coverage.messages_in_flight is 'Hidden, and their task is started.';
comment on column pgflow.queue_coverage.messages_delayed is
'Hidden for another reason: a start delay, a retry, a read without a claim.';
comment on column pgflow.queue_coverage.oldest_message_age is
'Since the oldest message was sent; null: the queue is empty.';
comment on column pgflow.queue_coverage.is_covered is 'Whether there is a live worker.';
