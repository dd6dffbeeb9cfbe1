create function pgflow.check_shape(flow_slug text, shape jsonb, queue_mode text)
returns void
language plpgsql
stable
set search_path to pg_catalog, pg_temp
as $function$
declare
  flaws text[];
  unknown_keys text[];
begin
  if not pgflow.is_valid_slug(check_shape.flow_slug) then
    perform pgflow.refuse_slug('Flow', check_shape.flow_slug);
  end if;

  select
    array_agg(described.flaw order by described.position) filter (where described.is_fatal),
    array_agg(described.place order by described.position) filter (where not described.is_fatal)
  into flaws, unknown_keys
  from (
    select
      flaw.position,
      place.place,
      place.place || ' ' || flaw.flaw as flaw,
      not flaw.is_unknown_key or check_shape.queue_mode = 'step' as is_fatal
    from pgflow.shape_flaws(check_shape.shape)
      with ordinality as flaw (step_index, step_slug, key, flaw, is_unknown_key, position)
    cross join lateral (
      select case
        when flaw.step_index is null then format('"%s"', flaw.key)
        when flaw.step_slug is null then format('the step at index %s: "%s"', flaw.step_index, flaw.key)
        else format('step "%s" at index %s: "%s"', flaw.step_slug, flaw.step_index, flaw.key)
      end
    ) as place (place)
  ) as described;

  if flaws is not null then
    raise exception using
      errcode = 'PF008',
      message = format('The shape of flow "%s" is not valid: %s.', check_shape.flow_slug, flaws[1]),
      detail = format(
        'It has %s: %s%s.',
        case cardinality(flaws) when 1 then '1 flaw' else cardinality(flaws) || ' flaws' end,
        array_to_string(flaws[1:10], '; '),
        case when cardinality(flaws) > 10 then '; ...' else '' end
      ),
      hint = 'Correct the flow''s definition and compile it again. Nothing was changed.';
  end if;

  if unknown_keys is not null then
    raise notice using
      message = format('The shape of flow "%s" has keys that are not known.', check_shape.flow_slug),
      detail = format('Ignored: %s.', array_to_string(unknown_keys, '; ')),
      hint = 'Check their spelling. A flow with per-step queues would be refused.';
  end if;
end
$function$;

comment on function pgflow.check_shape(text, jsonb, text) is
'Internal: returns when a flow''s slug is valid and its shape can be read by shape_steps(). Unknown keys are refused in step mode and a NOTICE in flow mode. Raises PF008, naming the step, its index and the key.';
