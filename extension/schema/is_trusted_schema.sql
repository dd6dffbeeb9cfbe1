create function pgflow.is_trusted_schema(schema_name text)
returns boolean
language sql
stable
begin atomic
  select count(*) > 0
  from pg_namespace as namespace
  cross join pg_namespace as home
  where namespace.nspname = is_trusted_schema.schema_name
    and home.nspname = 'pgflow'
    and pg_has_role(namespace.nspowner, home.nspowner, 'member');
end;

comment on function pgflow.is_trusted_schema(text) is
'Internal: whether a schema exists and its owner has the rights of the owner of pgflow anyway (is that role, a member of it, or a superuser). Anybody who may create schemas could make one named realtime, net, vault or cron, and what stands in it would run with the rights of whoever calls the engine.';
