create type pgflow.step_ending as (
  run_id uuid,
  step_slug text,
  ending text,
  reason text,
  message text
);

comment on type pgflow.step_ending is
'Internal: how a step of a run ends. ending is complete, skip, skip-cascade or fail; reason is the skip_reason; message the error_message.';
