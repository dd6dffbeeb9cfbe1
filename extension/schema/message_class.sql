create type pgflow.message_class as (
  msg_id bigint,
  class text,
  reason text,
  run_id uuid,
  step_slug text,
  task_index int
);

comment on type pgflow.message_class is
'What a message is to a subscription. class is claimable, started, terminal, gone or unsupported; the last three columns name its task, where it has one.';
