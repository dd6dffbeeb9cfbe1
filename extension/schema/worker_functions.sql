create table pgflow.worker_functions (
  function_name text not null primary key,
  enabled boolean not null default true,
  debounce interval not null default interval '6 seconds',
  last_invoked_at timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  start_mode text not null default 'http',
  disabled_at timestamptz,
  disabled_reason text,
  constraint debounce_is_at_least_a_second check (debounce >= interval '1 second'),
  constraint start_mode_is_known check (start_mode in ('http', 'process'))
);

select pg_catalog.pg_extension_config_dump('pgflow.worker_functions', '');

comment on table pgflow.worker_functions is 'One row a function that workers run: whether it may, and who starts it.';
comment on column pgflow.worker_functions.enabled is 'Decides alone whether workers of this function may register, claim and be started.';
comment on column pgflow.worker_functions.debounce is 'How long ensure_workers() leaves a function alone after it called it, and how fresh a heartbeat must be for it.';
comment on column pgflow.worker_functions.start_mode is 'http: ensure_workers() calls it. process: it starts itself.';
