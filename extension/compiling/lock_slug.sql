create function pgflow.lock_slug(flow_slug text)
returns void
language sql
set search_path to pg_catalog, pg_temp
as $function$
  -- Sixty-four bits, so that two slugs practically never share a key.
  select pg_advisory_xact_lock(hashtextextended('pgflow.flow ' || lock_slug.flow_slug, 0));
$function$;

comment on function pgflow.lock_slug(text) is
'Internal: lets one transaction at a time define, change or delete the flow of exactly this slug, whether it exists yet or not. Held to the end of the transaction.';
