create function pgflow.check_step_slugs(flow_slug text, step_slugs text[])
returns void
language plpgsql
immutable
parallel safe
set search_path to pg_catalog, pg_temp
as $function$
declare
  flaw record;
begin
  if coalesce(cardinality(check_step_slugs.step_slugs), 0) = 0 then
    raise exception using
      errcode = 'PF006',
      message = format('Flow "%s" has no steps, so it cannot use per-step queues.', check_step_slugs.flow_slug),
      detail = 'Per-step queues need at least one step; 0 were given.',
      hint = 'Add a step, or use the default single queue.';
  end if;

  if not pgflow.is_valid_slug(check_step_slugs.flow_slug) then
    perform pgflow.refuse_slug('Flow', check_step_slugs.flow_slug);
  end if;

  select candidate.step_index as index, candidate.step_slug as slug
  into flaw
  from pgflow.step_queue_candidates(check_step_slugs.flow_slug, check_step_slugs.step_slugs) as candidate
  where not pgflow.is_valid_slug(candidate.step_slug)
  order by candidate.step_index
  limit 1;

  if found then
    perform pgflow.refuse_slug(
      'Step',
      flaw.slug,
      format(' at index %s in flow "%s"', flaw.index, check_step_slugs.flow_slug)
    );
  end if;

  select twin.index, twin.slug, twin.other_index, twin.other_slug
  into flaw
  from (
    select
      candidate.step_index as index,
      candidate.step_slug as slug,
      first_value(candidate.step_index) over same_name as other_index,
      first_value(candidate.step_slug) over same_name as other_slug
    from pgflow.step_queue_candidates(check_step_slugs.flow_slug, check_step_slugs.step_slugs) as candidate
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
        check_step_slugs.flow_slug
      ),
      detail = format(
        'They are at index %s and %s; queue names are lower case, so both slugs stand for the same name.',
        flaw.other_index,
        flaw.index
      ),
      hint = 'Give the steps slugs that differ in more than case.';
  end if;
end
$function$;

comment on function pgflow.check_step_slugs(text, text[]) is
'Internal: returns when a step-mode flow can be told apart from others and its steps from each other. Raises PF006 (no steps), PF008 (bad slug), PF003 (two slugs that are equal or differ by case alone), in this order.';
