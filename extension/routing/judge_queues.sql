create function pgflow.judge_queues(
  flow_slug text,
  queue_mode text,
  step_slugs text[],
  replaces_own_queues boolean
)
returns table (
  step_index int,
  queue_name text,
  owner pgflow.queues,
  spellings text[],
  created_at timestamptz,
  relations text[],
  intruders text[],
  name_holders text[],
  twin_queue text,
  errcode text
)
language sql
stable
set search_path to pg_catalog, pg_temp
-- The planner guesses at thousands of queues: compiling such a plan takes a second, running it milliseconds.
set jit to off
as $function$
  with wanted as materialized (
    select wanted.queue_name, wanted.step_slug
    from pgflow.queues_to_own(judge_queues.flow_slug, judge_queues.queue_mode, judge_queues.step_slugs) as wanted
  ),
  relation_to_make as (
    select wanted.queue_name, relation.name
    from wanted
    cross join lateral unnest(pgflow.queue_relations(wanted.queue_name)) as relation (name)
  )
  select
    coalesce(array_position(judge_queues.step_slugs, wanted.step_slug) - 1, 0),
    wanted.queue_name,
    case when owner.queue_name is null then neighbour.queue else owner end,
    physical.spellings,
    physical.created_at,
    physical.relations,
    physical.intruders,
    physical.name_holders,
    twin.queue_name,
    case
      when twin.queue_name is not null then 'PF003'
      when owner.queue_name is null then
        case
          when (neighbour.queue).queue_name is not null then 'PF005'
          when physical.is_taken then 'PF004'
        end
      when owner.flow_slug <> judge_queues.flow_slug then 'PF005'
      when owner.step_slug is distinct from wanted.step_slug and not judge_queues.replaces_own_queues then 'PF005'
      -- A queue made again by somebody may hold what is not ours to drop.
      when physical.created_at <> owner.physical_created_at then 'PF007'
      -- Dropping the queue would leave these in the way of the new one.
      when physical.intruders || physical.name_holders <> '{}' then 'PF007'
      when judge_queues.replaces_own_queues then null
      when physical.created_at is null or not (physical.has_queue_table and physical.has_archive_table) then 'PF007'
    end
  from wanted
  inner join pgflow.physical_queues(array(select every.queue_name from wanted as every)) as physical
    on physical.queue_name = wanted.queue_name
  left join pgflow.queues as owner
    on owner.queue_name = wanted.queue_name
  -- PGMQ's name for the table of one queue can be its name for an index of another: of the same flow,
  left join relation_to_make as twin
    on twin.name = 'q_' || wanted.queue_name
    and twin.queue_name <> wanted.queue_name
  -- or of one that is there already.
  left join lateral (
    select other as queue
    from unnest(physical.name_holders) as holder (name)
    inner join pgflow.queues as other
      on other.queue_name = substring(holder.name from '^pgmq[.][qa]_(.+)$')
    order by other.queue_name collate "C"
    limit 1
  ) as neighbour
    on true;
$function$;

comment on function pgflow.judge_queues(text, text, text[], boolean) is
'Internal: whether a complete flow can have the queues it needs: one row a queue, with what is known of it, and the SQLSTATE of what is in the way (null: nothing). owner: whose the queue is, else whose other queue holds a name that it needs. replaces_own_queues: what the flow owns now is going to be dropped first. Raises what queues_to_own() raises.';
