create function pgflow.planned_changes(flow_slug text, queue_mode text, step_slugs text[])
returns jsonb
language sql
stable
set search_path to pg_catalog, pg_temp
as $function$
  select jsonb_build_object(
    'creates',
    (
      select jsonb_agg(wanted.queue_name order by wanted.queue_name collate "C")
      from pgflow.queues_to_own(
        planned_changes.flow_slug,
        planned_changes.queue_mode,
        planned_changes.step_slugs
      ) as wanted
    ),
    'drops',
    (
      select coalesce(jsonb_agg(owner.queue_name order by owner.queue_name collate "C"), '[]')
      from pgflow.queues as owner
      where owner.flow_slug = planned_changes.flow_slug
    ),
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
      )
    )
  );
$function$;

comment on function pgflow.planned_changes(text, text, text[]) is
'Internal: the part of a plan about queues that are made and dropped, and runs, tasks and waiting messages that are lost with them. A queue that is dropped and made again is in both lists.';
