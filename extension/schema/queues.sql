create table pgflow.queues (
  queue_name text not null primary key,
  flow_slug text not null,
  step_slug text,
  physical_created_at timestamptz not null,
  constraint queue_name_is_canonical check (
    queue_name = lower(queue_name collate "C") and length(queue_name) between 1 and 47
  )
);

create index queues_of_flow on pgflow.queues (flow_slug);

select pg_catalog.pg_extension_config_dump('pgflow.queues', '');

comment on table pgflow.queues is
'Who owns a physical queue. A queue belongs to one flow, and in step mode to one step of it.';
comment on column pgflow.queues.step_slug is 'The one step that the queue is private to; null: every step of a flow-mode flow.';
comment on column pgflow.queues.physical_created_at is
'Copy of pgmq.meta.created_at; a difference means that somebody dropped and made the queue again.';
