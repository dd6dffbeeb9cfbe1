create function pgflow.queues_to_own(flow_slug text, queue_mode text, step_slugs text[])
returns table (queue_name text, step_slug text)
language sql
immutable
parallel safe
set search_path to pg_catalog, pg_temp
as $function$
  -- A flow-mode flow has its queue even without steps, so its slug stands in for one.
  select
    route.queue_name,
    case when queues_to_own.queue_mode = 'step' then route.step_slug end
  from pgflow.flow_routes(
    queues_to_own.flow_slug,
    queues_to_own.queue_mode,
    case when queues_to_own.queue_mode = 'step' then queues_to_own.step_slugs else array[queues_to_own.flow_slug] end
  ) as route
  order by route.queue_name collate "C";
$function$;

comment on function pgflow.queues_to_own(text, text, text[]) is
'Internal: the queues that a complete flow needs for itself, sorted by name, each with the step it is private to (null in flow mode). Raises what flow_routes() raises.';
