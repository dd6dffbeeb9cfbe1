create type pgflow.message_ref as (
  queue_name text,
  msg_id bigint
);

comment on type pgflow.message_ref is 'Internal: names a message. Ids are counted per queue, so an id alone names nothing.';
