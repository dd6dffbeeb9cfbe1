create function pgflow.queue_owner(owner pgflow.queues)
returns text
language sql
immutable
parallel safe
set search_path to pg_catalog, pg_temp
as $function$
  select case
    when owner.step_slug is null then format('flow "%s"', owner.flow_slug)
    else format('step "%s" of flow "%s"', owner.step_slug, owner.flow_slug)
  end;
$function$;

comment on function pgflow.queue_owner(pgflow.queues) is 'Internal: who owns a queue, in words for error messages.';
