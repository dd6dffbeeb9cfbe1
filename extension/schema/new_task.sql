create type pgflow.new_task as (
  run_id uuid,
  step_slug text,
  task_index int,
  start_delay int
);

comment on type pgflow.new_task is 'Internal: a task that is to be made, with the seconds until it can be claimed.';
