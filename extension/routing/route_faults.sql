create function pgflow.route_faults(flow_slug text, only_step text default null)
returns table (step_index int, step_slug text, persisted text, derived text, fault text)
language sql
stable
set search_path to pg_catalog, pg_temp
-- The planner guesses at thousands of queues: compiling such a plan takes a second, running it milliseconds.
set jit to off
as $function$
  with flow as (
    select
      flow.flow_slug,
      flow.queue_mode,
      array(
        select step.step_slug
        from pgflow.steps as step
        where step.flow_slug = flow.flow_slug
        order by step.step_index
      ) as step_slugs
    from pgflow.flows as flow
    where flow.flow_slug = route_faults.flow_slug
  ),
  derived as (
    select route.step_slug, route.queue_name
    from flow
    cross join lateral pgflow.flow_routes(flow.flow_slug, flow.queue_mode, flow.step_slugs) as route
    -- A step-mode flow that lost its steps to a hand edit has no routes; it differs from any shape anyway.
    where cardinality(flow.step_slugs) > 0
  ),
  route as (
    select step.step_index, step.step_slug, step.queue_name as persisted, derived.queue_name as derived
    from flow
    inner join pgflow.steps as step
      on step.flow_slug = flow.flow_slug
    inner join derived
      on derived.step_slug = step.step_slug
    where route_faults.only_step is null or step.step_slug = route_faults.only_step
  ),
  -- In flow mode the one queue is judged once, and even when there are no steps.
  queue as (
    select route.step_index, route.step_slug, route.persisted, route.derived, route.persisted as queue_name
    from flow
    cross join route
    where flow.queue_mode = 'step'
    union all
    select null, null, queue.queue_name, queue.queue_name, queue.queue_name
    from flow
    cross join lateral (select lower(flow.flow_slug collate "C")) as queue (queue_name)
    where flow.queue_mode = 'flow'
  ),
  faults as (
    select
      route.step_index,
      route.step_slug,
      route.persisted,
      route.derived,
      1 as witness,
      format(
        'Step "%s" (index %s): the persisted route is "%s", the derived one is "%s".',
        route.step_slug,
        route.step_index,
        route.persisted,
        route.derived
      ) as fault
    from route
    where route.persisted <> route.derived
    union all
    select
      queue.step_index,
      queue.step_slug,
      queue.persisted,
      queue.derived,
      2,
      case
        when owner.queue_name is null then format('Queue "%s" has no owner row.', queue.queue_name)
        else format('Queue "%s" belongs to %s.', queue.queue_name, pgflow.queue_owner(owner))
      end
    from queue
    left join pgflow.queues as owner
      on owner.queue_name = queue.queue_name
    where (owner.flow_slug, owner.step_slug) is distinct from (route_faults.flow_slug, queue.step_slug)
    union all
    select
      queue.step_index,
      queue.step_slug,
      queue.persisted,
      queue.derived,
      3,
      case
        when physical.created_at is null then format('Queue "%s" is not listed by PGMQ.', queue.queue_name)
        when not physical.has_queue_table then concat_ws(
          ' ', format('Table pgmq.q_%s is gone.', queue.queue_name), names.taken
        )
        when not physical.has_archive_table then concat_ws(
          ' ', format('Table pgmq.a_%s is gone.', queue.queue_name), names.taken
        )
        when physical.created_at <> owner.physical_created_at then format(
          'Queue "%s" was made again: PGMQ says at %s, its owner row says at %s.',
          queue.queue_name,
          physical.created_at,
          owner.physical_created_at
        )
        else format(
          'Queue "%1$s" was made again, or lost its count: its next message would be %2$s, but tasks name messages up to '
          '%3$s. Run alter table pgmq.q_%1$s alter column msg_id restart with %4$s.',
          queue.queue_name,
          numbering.next_id,
          sent.highest_id,
          sent.highest_id + 1
        )
      end
    from queue
    inner join pgflow.physical_queues(array(select every.queue_name from queue as every)) as physical
      on physical.queue_name = queue.queue_name
    left join pgflow.queues as owner
      on owner.queue_name = queue.queue_name
    cross join lateral (
      select nullif(pgflow.taken_names(physical.intruders, physical.name_holders), '')
    ) as names (taken)
    cross join lateral (
      select max(task.message_id)
      from pgflow.step_tasks as task
      where task.queue_name = queue.queue_name
    ) as sent (highest_id)
    -- PGMQ keeps the time of a queue that was dropped under another spelling, or table by table; its ids tell.
    cross join lateral (
      select case
        when physical.has_queue_table and sent.highest_id is not null then
          pgflow.next_message_id(queue.queue_name, sent.highest_id)
      end
    ) as numbering (next_id)
    where physical.created_at is null
      or not physical.has_queue_table
      or not physical.has_archive_table
      or physical.created_at <> owner.physical_created_at
      or numbering.next_id <= sent.highest_id
  )
  select faults.step_index, faults.step_slug, faults.persisted, faults.derived, faults.fault
  from faults
  order by faults.step_index nulls first, faults.witness;
$function$;

comment on function pgflow.route_faults(text, text) is
'Internal: what is wrong with the persisted routes of a flow, or of one step of it, against the three witnesses: the route derived from the persisted steps and mode, the owner row, and the physical queue in PGMQ (listed, its tables there, made when recorded, its ids not given out before). One row a fault, a sentence each; no rows: sound, or no such flow. In flow mode faults of the one queue have no step.';
