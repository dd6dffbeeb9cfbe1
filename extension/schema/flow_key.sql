create function pgflow.flow_key(flow_slug text)
returns bigint
language sql
immutable
parallel safe
begin atomic
  -- Not the key of lock_slug(): verifying a flow, as every worker does when it starts, must not hold up its work.
  select hashtextextended('pgflow.use ' || flow_key.flow_slug, 0);
end;

comment on function pgflow.flow_key(text) is
'Internal: the key of the advisory lock that comes first in the order of locks. Whoever starts, claims, finishes, extends, requeues, prunes or registers holds it shared to the end of the transaction; take_flow() takes it alone. A row lock would not do: those who share it never queue up behind one who waits to have it alone, so on a busy flow he would wait for ever.';
