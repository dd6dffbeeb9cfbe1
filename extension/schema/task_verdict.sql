create type pgflow.task_verdict as (
  "position" int,
  run_id uuid,
  step_slug text,
  task_index int,
  step_index int,
  queue_name text,
  message_id bigint,
  verdict text,
  output jsonb,
  error_message text,
  visible_at timestamptz,
  stalled boolean
);

comment on type pgflow.task_verdict is
'Internal: what a result means for its task. verdict is completed, violates (output of the wrong type), retrying, exhausted, superseded, ended, repeated or unknown.';
