create function pgflow.queue_conflicts(
  flow_slug text,
  queue_mode text,
  step_slugs text[],
  replaces_own_queues boolean default false
)
returns table (
  step_index int,
  queue_name text,
  owner_flow text,
  owner_step text,
  errcode text,
  message text,
  detail text,
  hint text
)
language sql
stable
set search_path to pg_catalog, pg_temp
as $function$
  with wanted as materialized (
    select wanted.queue_name, wanted.step_slug
    from pgflow.queues_to_own(
      queue_conflicts.flow_slug,
      queue_conflicts.queue_mode,
      queue_conflicts.step_slugs
    ) as wanted
  ),
  relation_to_make as (
    select wanted.queue_name, relation.name
    from wanted
    cross join lateral unnest(pgflow.queue_relations(wanted.queue_name)) as relation (name)
  ),
  judged as (
    select
      coalesce(array_position(queue_conflicts.step_slugs, wanted.step_slug) - 1, 0) as step_index,
      wanted.queue_name,
      owner.flow_slug as owner_flow,
      owner.step_slug as owner_step,
      owner.physical_created_at,
      pgflow.queue_owner(owner) as owner_text,
      physical.spellings,
      physical.created_at,
      physical.relations,
      twin.queue_name as twin_queue,
      case
        when twin.queue_name is not null then 'PF003'
        when owner.queue_name is null and physical.is_taken then 'PF004'
        when owner.queue_name is null then null
        when owner.flow_slug <> queue_conflicts.flow_slug then 'PF005'
        when owner.step_slug is distinct from wanted.step_slug and not queue_conflicts.replaces_own_queues then 'PF005'
        -- A queue made again by somebody may hold what is not ours to drop.
        when physical.created_at <> owner.physical_created_at then 'PF007'
        when queue_conflicts.replaces_own_queues then null
        when physical.created_at is null or not (physical.has_queue_table and physical.has_archive_table) then 'PF007'
      end as errcode
    from wanted
    inner join pgflow.physical_queues(array(select every.queue_name from wanted as every)) as physical
      on physical.queue_name = wanted.queue_name
    left join pgflow.queues as owner
      on owner.queue_name = wanted.queue_name
    left join relation_to_make as twin
      on twin.name = 'q_' || wanted.queue_name
      and twin.queue_name <> wanted.queue_name
  )
  select
    judged.step_index,
    judged.queue_name,
    judged.owner_flow,
    judged.owner_step,
    judged.errcode,
    case judged.errcode
      when 'PF003' then format(
        'Queues "%s" and "%s" of flow "%s" cannot both be made.',
        judged.twin_queue,
        judged.queue_name,
        queue_conflicts.flow_slug
      )
      when 'PF004' then format(
        'Queue "%s", which flow "%s" needs, exists already and belongs to no flow.',
        judged.queue_name,
        queue_conflicts.flow_slug
      )
      when 'PF005' then format(
        'Queue "%s", which flow "%s" needs, belongs to %s.',
        judged.queue_name,
        queue_conflicts.flow_slug,
        judged.owner_text
      )
      else format(
        'Queue "%s" of flow "%s" is not the one that was made for it.',
        judged.queue_name,
        queue_conflicts.flow_slug
      )
    end,
    case judged.errcode
      when 'PF003' then format(
        'PGMQ''s name for the table of one, pgmq.q_%s, is its name for an index or sequence of the other.',
        judged.queue_name
      )
      when 'PF005' then format('A queue has one owner; this one''s is %s.', judged.owner_text)
      else concat_ws(
        ' ',
        case
          when cardinality(judged.spellings) > 0 then
            format('PGMQ lists it as "%s", made at %s.', array_to_string(judged.spellings, '", "'), judged.created_at)
          else 'PGMQ does not list it.'
        end,
        case
          when cardinality(judged.relations) > 0 then
            format('Schema pgmq has %s.', array_to_string(judged.relations, ', '))
          else 'Schema pgmq has nothing of it.'
        end,
        'Its owner row says it was made at ' || judged.physical_created_at::text || '.'
      )
    end,
    case judged.errcode
      when 'PF003' then 'Rename one of the steps.'
      when 'PF004' then concat(
        'Use another flow slug; or, when nobody needs it, ',
        case
          when cardinality(judged.spellings) > 0 then format('select pgmq.drop_queue(%L).', judged.spellings[1])
          else 'drop what is left over.'
        end
      )
      when 'PF005' then 'Use another flow slug, or delete the flow that owns the queue.'
      else format(
        'Run select * from pgflow.repair_queues(%L) to take over or make again what is missing, '
        'or drop the queue that somebody else made.',
        queue_conflicts.flow_slug
      )
    end
  from judged
  where judged.errcode is not null
  order by judged.step_index;
$function$;

comment on function pgflow.queue_conflicts(text, text, text[], boolean) is
'Internal: why a complete flow can''t have the queues it needs: one row a queue, in step order, with the SQLSTATE, MESSAGE, DETAIL and HINT that check_queues() raises. Empty when nothing is in the way. Raises what queues_to_own() raises.';
