create table pgflow.flows (
  flow_slug text not null primary key,
  opt_max_attempts int not null default 3,
  opt_base_delay int not null default 1,
  opt_timeout int not null default 60,
  created_at timestamptz not null default now(),
  queue_mode text not null default 'flow',
  generation int not null,
  constraint slug_is_valid check (pgflow.is_valid_slug(flow_slug)),
  constraint opt_max_attempts_is_nonnegative check (opt_max_attempts >= 0),
  constraint opt_base_delay_is_nonnegative check (opt_base_delay >= 0),
  constraint opt_timeout_is_positive check (opt_timeout > 0),
  constraint queue_mode_is_known check (queue_mode in ('flow', 'step'))
);

select pg_catalog.pg_extension_config_dump('pgflow.flows', '');

comment on table pgflow.flows is 'One row a flow: its runtime options and its deployment metadata.';
comment on column pgflow.flows.opt_max_attempts is 'How often a task is started at most; steps may override it.';
comment on column pgflow.flows.opt_base_delay is 'Base of the exponential retry delay, in seconds.';
comment on column pgflow.flows.opt_timeout is 'How long an attempt may take before its lease can be taken away, in seconds.';
comment on column pgflow.flows.queue_mode is 'flow: one queue for all steps. step: a private queue for every step. Never part of the shape.';
comment on column pgflow.flows.generation is 'Fences workers of an older definition: new at every destructive recompilation, never used again for this slug.';

-- One sequence for all flows, so that a generation stays unused even after its flow was deleted.
create sequence pgflow.flow_generations as int;

select pg_catalog.pg_extension_config_dump('pgflow.flow_generations', '');

comment on sequence pgflow.flow_generations is 'Where generations of flows come from.';

alter table pgflow.flows alter column generation set default nextval('pgflow.flow_generations');
