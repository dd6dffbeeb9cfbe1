create table pgflow.step_tasks (
  flow_slug text not null,
  run_id uuid not null,
  step_slug text not null,
  message_id bigint,
  task_index int not null default 0,
  status text not null default 'queued',
  attempts_count int not null default 0,
  error_message text,
  output jsonb,
  queued_at timestamptz not null default now(),
  started_at timestamptz,
  completed_at timestamptz,
  failed_at timestamptz,
  last_worker_id uuid references pgflow.workers (worker_id) on delete set null,
  requeued_count int not null default 0,
  last_requeued_at timestamptz,
  permanently_stalled_at timestamptz,
  queue_name text not null,
  skipped_at timestamptz,
  cancelled_at timestamptz,
  lease_extended_until timestamptz,
  primary key (run_id, step_slug, task_index),
  foreign key (run_id, step_slug) references pgflow.step_states (run_id, step_slug),
  constraint message_is_named_once unique (queue_name, message_id),
  constraint status_is_valid check (
    status in ('queued', 'started', 'completed', 'failed', 'skipped', 'cancelled')
  ),
  constraint task_index_is_nonnegative check (task_index >= 0),
  constraint attempts_count_is_nonnegative check (attempts_count >= 0),
  constraint requeued_count_is_nonnegative check (requeued_count >= 0),
  constraint output_only_for_completed_or_failed check (output is null or status in ('completed', 'failed')),
  constraint skipped_at_matches_status check ((status = 'skipped') = (skipped_at is not null)),
  constraint cancelled_at_matches_status check ((status = 'cancelled') = (cancelled_at is not null))
) with (fillfactor = 70);

-- Recovery looks for started tasks only; without this it would read every task that ever ran.
create index step_tasks_started on pgflow.step_tasks (started_at) where status = 'started';

-- Deleting a worker row clears last_worker_id; without this it would read every task that ever ran.
create index step_tasks_of_worker on pgflow.step_tasks (last_worker_id);

select pg_catalog.pg_extension_config_dump('pgflow.step_tasks', '');

comment on table pgflow.step_tasks is
'One row a task: the unit that a worker claims. Its message is named by (queue_name, message_id), since ids are counted per queue.';
comment on column pgflow.step_tasks.queue_name is 'The queue that the message was sent to: a snapshot of the route, never changed.';
comment on column pgflow.step_tasks.attempts_count is 'How often the task was claimed; the fencing token of the attempt in progress.';
comment on column pgflow.step_tasks.requeued_count is 'How often the task was taken back from a lost worker.';
comment on column pgflow.step_tasks.permanently_stalled_at is 'Set when the last allowed attempt was lost with its worker.';
comment on column pgflow.step_tasks.lease_extended_until is 'Set by extend_task(), cleared at each claim.';
