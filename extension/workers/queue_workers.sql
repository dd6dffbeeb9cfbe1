create view pgflow.queue_workers as
-- Judged once a worker, whatever this is joined with: a flow has hundreds of queues, and a fleet hundreds of workers.
with judged as materialized (
  select
    worker.worker_id,
    worker.function_name,
    worker.queue_name,
    worker.flow_slug,
    worker.step_slug,
    worker.last_heartbeat_at,
    pgflow.worker_is_live(worker)
    and not exists (
      select
      from pgflow.worker_standing(worker.worker_id) as standing
      where standing.errcode <> 'PF010'
    ) as is_serving
  from pgflow.workers as worker
)

select
  queue.queue_name,
  queue.flow_slug,
  queue.step_slug,
  worker.worker_id,
  worker.function_name,
  worker.last_heartbeat_at,
  worker.is_serving
from pgflow.queues as queue
-- Workers of pgflow 0.14 write the slug as it was written; they serve whole queues only.
inner join judged as worker
  on queue.queue_name = lower(worker.queue_name collate "C")
  and queue.flow_slug = coalesce(worker.flow_slug, queue.flow_slug)
  and queue.step_slug is not distinct from worker.step_slug;

comment on view pgflow.queue_workers is
'Which workers are there for which owned queue: registered ones by their exact subscription, workers of pgflow 0.14 by the name of a flow-mode flow''s queue.';
comment on column pgflow.queue_workers.step_slug is 'Null: every step of a flow-mode flow.';
comment on column pgflow.queue_workers.is_serving is 'The worker is live, and nothing keeps it from claiming.';
