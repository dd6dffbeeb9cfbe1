create function pgflow.planned_collisions(
  flow_slug text,
  queue_mode text,
  step_slugs text[],
  replaces_own_queues boolean
)
returns jsonb
language sql
stable
set search_path to pg_catalog, pg_temp
as $function$
  select jsonb_build_object(
    'collisions',
    coalesce(
      jsonb_agg(
        jsonb_build_object(
          'queue_name', conflict.queue_name,
          'owner_flow', conflict.owner_flow,
          'owner_step', conflict.owner_step
        )
        order by conflict.step_index
      ),
      '[]'
    )
  )
  from pgflow.queue_conflicts(
    planned_collisions.flow_slug,
    planned_collisions.queue_mode,
    planned_collisions.step_slugs,
    planned_collisions.replaces_own_queues
  ) as conflict;
$function$;

comment on function pgflow.planned_collisions(text, text, text[], boolean) is
'Internal: the part of a plan about queues that the flow can''t have, and their owners (null: nobody).';
