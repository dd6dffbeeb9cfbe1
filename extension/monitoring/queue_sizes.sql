create view pgflow.queue_sizes as
select
  queue.flow_slug,
  queue.step_slug,
  queue.queue_name,
  pg_total_relation_size(to_regclass(format('pgmq.%I', 'q_' || queue.queue_name))) as queue_bytes,
  pg_total_relation_size(to_regclass(format('pgmq.%I', 'a_' || queue.queue_name))) as archive_bytes
from pgflow.queues as queue;

comment on view pgflow.queue_sizes is
'How large each owned queue and its archive are on disk, with their indexes, in bytes. prune_data_older_than() empties archives; the space is used again, and VACUUM FULL gives it back.';
comment on column pgflow.queue_sizes.step_slug is 'Null: every step of a flow-mode flow.';
comment on column pgflow.queue_sizes.queue_bytes is 'Null: the queue''s table is gone.';
comment on column pgflow.queue_sizes.archive_bytes is 'Null: the archive''s table is gone.';
