create function pgflow.resolve_step_queues(flow_slug text, step_slugs text[])
returns table (step_index int, step_slug text, queue_name text, resolution text)
language plpgsql
immutable
parallel safe
set search_path to pg_catalog, pg_temp
as $function$
begin
  -- Before any naming: long twins would fall back to different index names, and nobody would notice them.
  perform pgflow.check_step_slugs(resolve_step_queues.flow_slug, resolve_step_queues.step_slugs);
  perform pgflow.check_name_lengths(resolve_step_queues.flow_slug, resolve_step_queues.step_slugs);

  -- No slug begins with a digit, so a fallback never equals a readable name, and all names are distinct here.
  return query
  select
    candidate.step_index,
    candidate.step_slug,
    case when name.is_readable then candidate.readable else candidate.fallback end,
    case when name.is_readable then 'readable' else 'fallback' end
  from pgflow.step_queue_candidates(resolve_step_queues.flow_slug, resolve_step_queues.step_slugs) as candidate
  cross join lateral (select length(candidate.readable) <= pgflow.max_queue_name_length()) as name (is_readable)
  order by candidate.step_index;
end
$function$;

comment on function pgflow.resolve_step_queues(text, text[]) is
'The queue of every step of a complete step-mode flow, in step order, with its zero-based index. resolution is readable (<flow>__<step>) or fallback (<flow>__<index>); names are lower case, at most 47 characters, never cut. Reads no table. Raises PF006 (no steps), PF008 (bad slug), PF003 (two steps, one name), PF001 (the flow fits no queue), PF002 (a step fits none), in this order.';
