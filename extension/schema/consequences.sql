create type pgflow.consequences as (
  leaving pgflow.message_ref array,
  run_ids uuid array,
  step_slugs text array
);

comment on type pgflow.consequences is
'Internal: what follows when steps end. leaving: messages that must leave their queues. run_ids and step_slugs, in step: the dependents that wait for nothing any more.';
