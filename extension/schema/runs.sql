create table pgflow.runs (
  run_id uuid not null default gen_random_uuid() primary key,
  flow_slug text not null references pgflow.flows (flow_slug),
  status text not null default 'started',
  input jsonb not null,
  output jsonb,
  remaining_steps int not null default 0,
  started_at timestamptz not null default now(),
  completed_at timestamptz,
  failed_at timestamptz,
  constraint status_is_valid check (status in ('started', 'completed', 'failed')),
  constraint remaining_steps_is_nonnegative check (remaining_steps >= 0),
  constraint completed_at_or_failed_at check (completed_at is null or failed_at is null)
);

create index runs_of_flow on pgflow.runs (flow_slug);

select pg_catalog.pg_extension_config_dump('pgflow.runs', '');

comment on table pgflow.runs is 'One row a run of a flow.';
comment on column pgflow.runs.output is 'Output of every completed step without dependents, by slug; set when the run completes.';
