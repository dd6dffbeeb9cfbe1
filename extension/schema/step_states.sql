create table pgflow.step_states (
  flow_slug text not null,
  run_id uuid not null references pgflow.runs (run_id),
  step_slug text not null,
  status text not null default 'created',
  remaining_tasks int,
  initial_tasks int,
  remaining_deps int not null default 0,
  output jsonb,
  error_message text,
  skip_reason text,
  created_at timestamptz not null default now(),
  started_at timestamptz,
  completed_at timestamptz,
  failed_at timestamptz,
  skipped_at timestamptz,
  primary key (run_id, step_slug),
  constraint status_is_valid check (status in ('created', 'started', 'completed', 'failed', 'skipped')),
  constraint remaining_tasks_is_nonnegative check (remaining_tasks >= 0),
  constraint initial_tasks_is_nonnegative check (initial_tasks >= 0),
  constraint remaining_deps_is_nonnegative check (remaining_deps >= 0),
  constraint remaining_tasks_state_consistency check (remaining_tasks is null or status <> 'created'),
  constraint output_only_for_completed_or_null check (output is null or status = 'completed'),
  constraint skip_reason_matches_status check ((status = 'skipped') = (skip_reason is not null)),
  constraint skip_reason_is_known check (
    skip_reason in ('condition_unmet', 'handler_failed', 'dependency_skipped')
  )
) with (fillfactor = 80);

select pg_catalog.pg_extension_config_dump('pgflow.step_states', '');

comment on table pgflow.step_states is 'One row a step of a run.';
comment on column pgflow.step_states.remaining_tasks is 'Tasks without a result yet; null until the step started, and for skipped ones.';
comment on column pgflow.step_states.initial_tasks is 'Tasks the step will have: 1 for a single step, the length of its input for a map; null while that is unknown.';
