create function pgflow.check_name_lengths(flow_slug text, step_slugs text[])
returns void
language plpgsql
immutable
parallel safe
set search_path to pg_catalog, pg_temp
as $function$
declare
  longest constant int := pgflow.max_queue_name_length();
  shortest_need constant text := lower((check_name_lengths.flow_slug || '__0') collate "C");
  flaw record;
begin
  if length(shortest_need) > longest then
    raise exception using
      errcode = 'PF001',
      message = format('Flow "%s" cannot use per-step queues.', check_name_lengths.flow_slug),
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
  from pgflow.step_queue_candidates(check_name_lengths.flow_slug, check_name_lengths.step_slugs) as candidate
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
        check_name_lengths.flow_slug
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
end
$function$;

comment on function pgflow.check_name_lengths(text, text[]) is
'Internal: returns when every step of a step-mode flow has a queue name that fits. Raises PF001 (none could fit), PF002 (one step''s two names are both too long).';
