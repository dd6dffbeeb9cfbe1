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
        'Queue "%s", which flow "%s" needs, %s %s.',
        judged.queue_name,
        queue_conflicts.flow_slug,
        case
          when (judged.owner).queue_name = judged.queue_name then 'belongs to'
          else format('can''t be made beside queue "%s" of', (judged.owner).queue_name)
        end,
        pgflow.queue_owner(judged.owner)
      )
      else format(
        'Queue "%s" of flow "%s" is not the one that was made for it.',
        judged.queue_name,
        queue_conflicts.flow_slug
      )
    end,
    case
      when judged.errcode = 'PF003' then format(
        'PGMQ''s name for the table of one, pgmq.q_%s, is its name for an index or sequence of the other.',
        judged.queue_name
      )
      when judged.errcode = 'PF005' and (judged.owner).queue_name = judged.queue_name then
        format('A queue has one owner; this one''s is %s.', pgflow.queue_owner(judged.owner))
      else concat_ws(
        ' ',
        case
          when judged.spellings <> '{}' then
            format('PGMQ lists it as "%s", made at %s.', array_to_string(judged.spellings, '", "'), judged.created_at)
          else 'PGMQ does not list it.'
        end,
        case
          when judged.relations <> '{}' then
            format('Schema pgmq has %s.', array_to_string(judged.relations, ', '))
          else 'Schema pgmq has nothing of it.'
        end,
        nullif(pgflow.taken_names(judged.intruders, judged.name_holders), ''),
        case
          when judged.errcode = 'PF007' then
            'Its owner row says it was made at ' || (judged.owner).physical_created_at::text || '.'
        end
      )
    end,
    case
      when judged.errcode = 'PF003' then 'Rename one of the steps.'
      when judged.errcode = 'PF004' then concat(
        'Use another flow slug',
        '; or, when nobody needs it, '
        -- What else has a name that the queue needs is not the queue, and nothing is known of it.
        || case when judged.name_holders = '{}' then removal.statements end,
        '.'
      )
      -- Whoever deleted the owner now would meet the steps of this flow, which route to the queue.
      when judged.errcode = 'PF005' and owning.was_taken_away then format(
        'Steps of flow "%s" route to it: its owner was changed by hand. To give it back: '
        'update pgflow.queues set flow_slug = %L, step_slug = %L where queue_name = %L.',
        queue_conflicts.flow_slug,
        queue_conflicts.flow_slug,
        case when queue_conflicts.queue_mode = 'step' then queue_conflicts.step_slugs[judged.step_index + 1] end,
        judged.queue_name
      )
      -- Left behind by a flow that was deleted by hand: no function works on a flow that is not there.
      when not owning.flow_is_there then format(
        'There is no flow "%s"; its row was left behind. When nobody needs the queue: '
        'delete from pgflow.queues where queue_name = %L.',
        (judged.owner).flow_slug,
        (judged.owner).queue_name
      )
      when judged.errcode = 'PF005' then format(
        'Use another flow slug; or, when nobody needs flow "%s", select pgflow.delete_flow_and_data(%L).',
        (judged.owner).flow_slug,
        (judged.owner).flow_slug
      )
      when judged.intruders || judged.name_holders <> '{}' then concat(
        'Rename what has the names that the queue needs',
        '; or, when nobody needs it, ' || nullif(array_to_string(judged.intruders, '; '), ''),
        '.'
      )
      else concat(
        format(
          'Run select * from pgflow.repair_queues(%L) to take over or make again what is missing',
          queue_conflicts.flow_slug
        ),
        '; or, when nobody needs what is there, ' || removal.statements,
        '.'
      )
    end
  from pgflow.judge_queues(
    queue_conflicts.flow_slug,
    queue_conflicts.queue_mode,
    queue_conflicts.step_slugs,
    queue_conflicts.replaces_own_queues
  ) as judged
  cross join lateral (
    select nullif(array_to_string(pgflow.queue_removal(judged.queue_name) || judged.intruders, '; '), '')
  ) as removal (statements)
  cross join lateral (
    -- A flow that is just being made is not there yet, even where its row is.
    select case
      when (judged.owner).flow_slug = queue_conflicts.flow_slug then queue_conflicts.replaces_own_queues
      else exists (select from pgflow.flows as flow where flow.flow_slug = (judged.owner).flow_slug)
    end,
    exists (
      select
      from pgflow.steps as step
      where step.flow_slug = queue_conflicts.flow_slug
        and step.queue_name = (judged.owner).queue_name
    )
  ) as owning (flow_is_there, was_taken_away)
  where judged.errcode is not null
  order by judged.step_index;
$function$;

comment on function pgflow.queue_conflicts(text, text, text[], boolean) is
'Internal: why a complete flow can''t have the queues it needs: one row a queue, in step order, with the SQLSTATE, MESSAGE, DETAIL and HINT that check_queues() raises. Empty when nothing is in the way. Raises what queues_to_own() raises.';
