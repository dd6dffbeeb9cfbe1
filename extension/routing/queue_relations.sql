create function pgflow.queue_relations(queue_name text)
returns text[]
language sql
immutable
parallel safe
set search_path to pg_catalog, pg_temp
as $function$
  select array[
    'q_' || queue_relations.queue_name,
    'a_' || queue_relations.queue_name,
    -- PGMQ skips an index whose name is taken, and finds the sequence by this name only.
    'q_' || queue_relations.queue_name || '_vt_idx',
    'q_' || queue_relations.queue_name || '_pkey',
    'q_' || queue_relations.queue_name || '_msg_id_seq'
  ];
$function$;

comment on function pgflow.queue_relations(text) is
'Internal: what PGMQ makes in its schema for a queue (canonical name): its tables, and what belongs to them and could be in the way of another queue''s.';
