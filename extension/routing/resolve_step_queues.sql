create function pgflow.resolve_step_queues(flow_slug text, step_slugs text[])
returns table (step_index int, step_slug text, queue_name text, resolution text)
language plpgsql
immutable
parallel safe
set search_path to pg_catalog, pg_temp
as $function$
declare
  longest constant int := pgflow.max_queue_name_length();
  shortest_need constant text := lower((resolve_step_queues.flow_slug || '__0') collate "C");
  flaw record;
begin
  if coalesce(cardinality(resolve_step_queues.step_slugs), 0) = 0 then
    raise exception using
      errcode = 'PF006',
      message = format('Flow "%s" has no steps, so it cannot use per-step queues.', resolve_step_queues.flow_slug),
      detail = 'Per-step queues need at least one step; 0 were given.',
      hint = 'Add a step, or use the default single queue.';
  end if;

  if not pgflow.is_valid_slug(resolve_step_queues.flow_slug) then
    raise exception using
      errcode = 'PF008',
      message = format('Flow slug %s is not valid.', coalesce(to_json(resolve_step_queues.flow_slug)::text, 'null')),
      detail = format('It has %s characters.', coalesce(length(resolve_step_queues.flow_slug), 0)),
      hint = 'Use 1 to 128 letters, digits or underscores, not starting with a digit; "run" is reserved.';
  end if;

  select candidate.step_index as index, candidate.step_slug as slug
  into flaw
  from pgflow.step_queue_candidates(resolve_step_queues.flow_slug, resolve_step_queues.step_slugs) as candidate
  where not pgflow.is_valid_slug(candidate.step_slug)
  order by candidate.step_index
  limit 1;

  if found then
    raise exception using
      errcode = 'PF008',
      message = format(
        'Step slug %s at index %s in flow "%s" is not valid.',
        coalesce(to_json(flaw.slug)::text, 'null'),
        flaw.index,
        resolve_step_queues.flow_slug
      ),
      detail = format('It has %s characters.', coalesce(length(flaw.slug), 0)),
      hint = 'Use 1 to 128 letters, digits or underscores, not starting with a digit; "run" is reserved.';
  end if;

  -- Before any naming: long twins would fall back to different index names, and nobody would notice them.
  select twin.index, twin.slug, twin.other_index, twin.other_slug
  into flaw
  from (
    select
      candidate.step_index as index,
      candidate.step_slug as slug,
      first_value(candidate.step_index) over same_name as other_index,
      first_value(candidate.step_slug) over same_name as other_slug
    from pgflow.step_queue_candidates(resolve_step_queues.flow_slug, resolve_step_queues.step_slugs) as candidate
    window same_name as (partition by candidate.readable order by candidate.step_index)
  ) as twin
  where twin.index <> twin.other_index
  order by twin.index
  limit 1;

  if found then
    raise exception using
      errcode = 'PF003',
      message = format(
        'Steps "%s" and "%s" of flow "%s" cannot both have a queue.',
        flaw.other_slug,
        flaw.slug,
        resolve_step_queues.flow_slug
      ),
      detail = format(
        'They are at index %s and %s; queue names are lower case, so both slugs stand for the same name.',
        flaw.other_index,
        flaw.index
      ),
      hint = 'Give the steps slugs that differ in more than case.';
  end if;

  if length(shortest_need) > longest then
    raise exception using
      errcode = 'PF001',
      message = format('Flow "%s" cannot use per-step queues.', resolve_step_queues.flow_slug),
      detail = format(
        'The shortest required queue "%s" is %s characters; PGMQ allows at most %s.',
        shortest_need,
        length(shortest_need),
        longest
      ),
      hint = 'Shorten the concrete flow slug or use the default single queue.';
  end if;

  select
    candidate.step_index as index,
    candidate.step_slug as slug,
    length(candidate.readable) as readable_length,
    length(candidate.fallback) as fallback_length
  into flaw
  from pgflow.step_queue_candidates(resolve_step_queues.flow_slug, resolve_step_queues.step_slugs) as candidate
  where least(length(candidate.readable), length(candidate.fallback)) > longest
  order by candidate.step_index
  limit 1;

  if found then
    raise exception using
      errcode = 'PF002',
      message = format(
        'Cannot derive a queue for step "%s" at index %s in flow "%s".',
        flaw.slug,
        flaw.index,
        resolve_step_queues.flow_slug
      ),
      detail = format(
        'The readable name is %s characters and the index fallback is %s; PGMQ allows at most %s.',
        flaw.readable_length,
        flaw.fallback_length,
        longest
      ),
      hint = 'Shorten the concrete flow slug, shorten the step slug enough for the readable name, '
        'or use the default single queue.';
  end if;

  -- A fallback never equals a readable name, since no slug begins with a digit: so the names are distinct here.
  return query
  select
    candidate.step_index,
    candidate.step_slug,
    case when length(candidate.readable) <= longest then candidate.readable else candidate.fallback end,
    case when length(candidate.readable) <= longest then 'readable' else 'fallback' end
  from pgflow.step_queue_candidates(resolve_step_queues.flow_slug, resolve_step_queues.step_slugs) as candidate
  order by candidate.step_index;
end
$function$;

comment on function pgflow.resolve_step_queues(text, text[]) is
'The queue of every step of a complete step-mode flow, in step order, with its zero-based index. resolution is readable (<flow>__<step>) or fallback (<flow>__<index>); names are lower case, at most 47 characters, never cut. Reads no table. Raises PF006 (no steps), PF008 (bad slug), PF003 (two steps, one name), PF001 (the flow fits no queue), PF002 (a step fits none).';
