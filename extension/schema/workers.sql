create table pgflow.workers (
  worker_id uuid not null primary key,
  queue_name text not null,
  function_name text not null,
  started_at timestamptz not null default now(),
  deprecated_at timestamptz,
  stopped_at timestamptz,
  last_heartbeat_at timestamptz not null default now(),
  flow_slug text,
  step_slug text,
  generation int,
  stop_reason text
);

create index workers_of_queue on pgflow.workers (queue_name);
create index workers_of_function on pgflow.workers (function_name);

select pg_catalog.pg_extension_config_dump('pgflow.workers', '');

comment on table pgflow.workers is 'One row a worker that registered, or that wrote its own row as the workers of pgflow 0.14 do.';
comment on column pgflow.workers.deprecated_at is 'Set when the worker was asked to finish what it has and stop.';
comment on column pgflow.workers.flow_slug is 'With step_slug and queue_name the exact subscription; null for workers of pgflow 0.14.';
comment on column pgflow.workers.step_slug is 'Null: a flow-mode flow''s whole queue.';
comment on column pgflow.workers.generation is 'The flow''s generation when the worker registered; an older one can claim nothing.';
comment on column pgflow.workers.stop_reason is 'Why the worker was told to stop; set by the server.';
