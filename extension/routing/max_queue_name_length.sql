create function pgflow.max_queue_name_length()
returns int
language sql
immutable
parallel safe
begin atomic
  -- PGMQ puts up to 16 characters before a queue name, and PostgreSQL cuts identifiers at 63.
  select 47;
end;

comment on function pgflow.max_queue_name_length() is
'Internal: how many characters a queue name may have: a fixed limit of this extension, whatever a newer PGMQ would accept.';
