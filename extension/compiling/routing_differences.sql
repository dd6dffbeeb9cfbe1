create function pgflow.routing_differences(flow_slug text, queue_mode text, step_slugs text[])
returns text[]
language sql
stable
set search_path to pg_catalog, pg_temp
as $function$
  with route as (
    select
      coalesce(persisted.step_index, derived.step_index) as step_index,
      coalesce(persisted.step_slug, derived.step_slug) as step_slug,
      persisted.queue_name as persisted,
      derived.queue_name as derived
    from (
      select step.step_index, step.step_slug, step.queue_name
      from pgflow.steps as step
      where step.flow_slug = routing_differences.flow_slug
    ) as persisted
    full join pgflow.flow_routes(
      routing_differences.flow_slug,
      routing_differences.queue_mode,
      routing_differences.step_slugs
    ) as derived
      on derived.step_slug = persisted.step_slug
  ),
  difference as (
    select
      1 as kind,
      null::int as step_index,
      format(
        'Queue mode: the database has "%s", the call has "%s".',
        flow.queue_mode,
        routing_differences.queue_mode
      ) as sentence
    from pgflow.flows as flow
    where flow.flow_slug = routing_differences.flow_slug
      and flow.queue_mode <> routing_differences.queue_mode
    union all
    select
      2,
      route.step_index,
      format(
        'Route of step "%s" at index %s: persisted %s, derived %s.',
        route.step_slug,
        route.step_index,
        coalesce('"' || route.persisted || '"', 'none'),
        coalesce('"' || route.derived || '"', 'none')
      )
    from route
    where route.persisted is distinct from route.derived
    union all
    select 3, fault.step_index, fault.fault
    from pgflow.route_faults(routing_differences.flow_slug) as fault
    where fault.persisted = fault.derived
  )
  select coalesce(
    array_agg(
      difference.sentence
      order by difference.kind, difference.step_index nulls first, difference.sentence collate "C"
    ),
    '{}'
  )
  from difference;
$function$;

comment on function pgflow.routing_differences(text, text, text[]) is
'Internal: how the persisted mode and routes of a flow differ from those derived for a complete shape, and what is wrong with the queues themselves, a sentence each; empty when all agree.';
