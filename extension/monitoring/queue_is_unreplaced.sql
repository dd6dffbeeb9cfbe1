create function pgflow.queue_is_unreplaced(queue_name text)
returns boolean
language sql
stable
set search_path to pg_catalog, pg_temp
as $function$
  -- A query on pg_class sees the table as of the snapshot, to_regclass() as of now.
  select
    (
      select class.oid
      from pg_class as class
      where class.relname = 'q_' || queue_is_unreplaced.queue_name
        and class.relnamespace = 'pgmq'::regnamespace
    ) is not distinct from to_regclass(format('pgmq.%I', 'q_' || queue_is_unreplaced.queue_name))::oid;
$function$;

comment on function pgflow.queue_is_unreplaced(text) is
'Internal: false when a queue''s table was dropped or made again since the snapshot of the query was taken. What was read of it then doesn''t belong to the tasks of that snapshot.';
