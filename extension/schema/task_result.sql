create type pgflow.task_result as (
  run_id uuid,
  step_slug text,
  task_index int,
  attempt int,
  kind text,
  output jsonb,
  error_message text
);

comment on type pgflow.task_result is
'Internal: a result for one task. kind is success, failure or stalled (its last allowed attempt was lost with its worker); a null attempt is not checked.';
