create function pgflow.step_queue_candidates(flow_slug text, step_slugs text[])
returns table (step_index int, step_slug text, readable text, fallback text)
language sql
immutable
parallel safe
set search_path to pg_catalog, pg_temp
as $function$
  select
    (step.position - 1)::int,
    step.slug,
    lower((step_queue_candidates.flow_slug || '__' || step.slug) collate "C"),
    lower((step_queue_candidates.flow_slug || '__' || (step.position - 1)::text) collate "C")
  from unnest(step_queue_candidates.step_slugs) with ordinality as step (slug, position)
  order by step.position;
$function$;

comment on function pgflow.step_queue_candidates(text, text[]) is
'Internal: the two names that the queue of each step could have, in step order: by slug and by zero-based index. Checks nothing.';
