create type pgflow.consequences as (
  leaving pgflow.message_ref[],
  run_ids uuid[],
  step_slugs text[]
);

comment on type pgflow.consequences is
'Internal: what follows when steps end. leaving: messages that must leave their queues. run_ids and step_slugs, in step: the dependents that wait for nothing any more.';
