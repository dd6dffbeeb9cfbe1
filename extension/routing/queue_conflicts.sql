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
  select
    judged.step_index,
    judged.queue_name,
    (judged.owner).flow_slug,
    (judged.owner).step_slug,
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
        owner.words
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
      when 'PF005' then format('A queue has one owner; this one''s is %s.', owner.words)
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
        'Its owner row says it was made at ' || (judged.owner).physical_created_at::text || '.'
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
  from pgflow.judge_queues(
    queue_conflicts.flow_slug,
    queue_conflicts.queue_mode,
    queue_conflicts.step_slugs,
    queue_conflicts.replaces_own_queues
  ) as judged
  cross join lateral (select pgflow.queue_owner(judged.owner)) as owner (words)
  where judged.errcode is not null
  order by judged.step_index;
$function$;

comment on function pgflow.queue_conflicts(text, text, text[], boolean) is
'Internal: why a complete flow can''t have the queues it needs: one row a queue, in step order, with the SQLSTATE, MESSAGE, DETAIL and HINT that check_queues() raises. Empty when nothing is in the way. Raises what queues_to_own() raises.';
