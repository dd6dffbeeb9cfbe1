create view pgflow.unserved_queues as
select
  flow.flow_slug,
  owner.step_slug,
  owner.queue_name,
  depth.messages_total,
  clock_timestamp() - depth.oldest_enqueued_at as oldest_message_age,
  pool.last_heartbeat_at,
  format(
    '%s messages wait and no live worker serves this queue; a worker of it was last heard of: %s%s',
    depth.messages_total,
    coalesce(pool.last_heartbeat_at::text, 'never'),
    '; the flow is fenced: ' || fence.reason
  ) as reason
from pgflow.flows as flow
-- By flow, so that a query about one flow reads the queues of that flow only.
cross join lateral pgflow.queue_depths(flow.flow_slug) as depth
inner join pgflow.queues as owner on owner.queue_name = depth.queue_name
cross join lateral (
  select
    count(*) filter (where worker.is_serving) as live_workers,
    max(worker.last_heartbeat_at) as last_heartbeat_at
  from pgflow.queue_workers as worker
  where worker.queue_name = owner.queue_name
) as pool
left join lateral (
  select open.reason
  from pgflow.fences as open
  where open.flow_slug = flow.flow_slug
    and open.restored_at is null
  order by open.fenced_at
  limit 1
) as fence on true
where depth.messages_total > 0
  and pool.live_workers = 0;

comment on view pgflow.unserved_queues is
'Owned queues on which work waits and that no live worker serves: what coverage_gaps() returns.';
comment on column pgflow.unserved_queues.step_slug is 'Null: every step of a flow-mode flow.';
comment on column pgflow.unserved_queues.last_heartbeat_at is
'When any worker of the queue was last heard of; null: never.';
