create function pgflow.planned_changes(flow_slug text, queue_mode text, step_slugs text[])
returns jsonb
language sql
stable
set search_path to pg_catalog, pg_temp
as $function$
  with owned as materialized (
    select
      owner.queue_name,
      owner.physical_created_at,
      flow.flow_slug is not null as is_replaced,
      physical.created_at,
      physical.spellings <> '{}' or physical.has_queue_table or physical.has_archive_table as is_there
    from pgflow.queues as owner
    inner join pgflow.physical_queues(
      array(select every.queue_name from pgflow.queues as every where every.flow_slug = planned_changes.flow_slug)
    ) as physical
      on physical.queue_name = owner.queue_name
    -- Without its flow, an owner row that was left behind is taken as it is, and its queue too.
    left join pgflow.flows as flow
      on flow.flow_slug = owner.flow_slug
    where owner.flow_slug = planned_changes.flow_slug
  ),
  dropped as (
    select owned.queue_name
    from owned
    where owned.is_replaced
      and owned.is_there
      -- What somebody made again is not the flow's to drop.
      and coalesce(owned.created_at = owned.physical_created_at, true)
  )
  select jsonb_build_object(
    'creates',
    (
      select coalesce(jsonb_agg(wanted.queue_name order by wanted.queue_name collate "C"), '[]')
      from pgflow.queues_to_own(
        planned_changes.flow_slug,
        planned_changes.queue_mode,
        planned_changes.step_slugs
      ) as wanted
      where wanted.queue_name not in (select owned.queue_name from owned where not owned.is_replaced)
    ),
    'drops',
    (select coalesce(jsonb_agg(dropped.queue_name order by dropped.queue_name collate "C"), '[]') from dropped),
    'loses',
    jsonb_build_object(
      'runs',
      (select count(*) from pgflow.runs as run where run.flow_slug = planned_changes.flow_slug),
      'tasks',
      (
        select count(*)
        from pgflow.runs as run
        inner join pgflow.step_tasks as task
          on task.run_id = run.run_id
        where run.flow_slug = planned_changes.flow_slug
      ),
      'messages',
      (
        select coalesce(sum(depth.messages_total), 0)
        from pgflow.queue_depths(planned_changes.flow_slug) as depth
        where depth.queue_name in (select dropped.queue_name from dropped)
      )
    )
  );
$function$;

comment on function pgflow.planned_changes(text, text, text[]) is
'Internal: the part of a plan about queues that are made and dropped, and runs, tasks and waiting messages that are lost with them. A queue that is dropped and made again is in both lists; one that is gone already, or that somebody made again, is not dropped.';
