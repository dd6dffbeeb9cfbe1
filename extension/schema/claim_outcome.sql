create type pgflow.claim_outcome as (
  msg_id bigint,
  outcome text,
  reason text,
  flow_slug text,
  run_id uuid,
  step_slug text,
  task_index int,
  attempt int,
  input jsonb,
  flow_input jsonb
);

comment on type pgflow.claim_outcome is
'What became of one message of a batch. outcome is claimed, deferred, archived, gone, unsupported or released; the columns of the task are null unless it is claimed. attempt is the fencing token to finish with.';
