create function pgflow.refuse_unknown_flow(flow_slug text)
returns void
language plpgsql
stable
set search_path to pg_catalog, pg_temp
as $function$
begin
  raise exception using
    errcode = 'PF018',
    message = format('Flow %s is not known.', coalesce('"' || refuse_unknown_flow.flow_slug || '"', 'null')),
    detail = format(
      'Flows with a slug like it: %s.',
      coalesce(
        (
          select string_agg(flow.flow_slug, ', ' order by flow.flow_slug collate "C")
          from pgflow.flows as flow
          where lower(flow.flow_slug collate "C") = lower(refuse_unknown_flow.flow_slug collate "C")
        ),
        'none'
      )
    ),
    hint = 'Slugs are case-sensitive. Compile the flow first: select pgflow.ensure_flow_compiled(...).';
end
$function$;

comment on function pgflow.refuse_unknown_flow(text) is
'Internal: raises PF018 for the slug of a flow that is not known, with those that differ by case alone.';
